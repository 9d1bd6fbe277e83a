"""The records read for a share fetch: only batches that the member can acquire are parsed."""

import pytest

from broker_sim.protocol.records import build_batch
from broker_sim.share.partition.acquisition import AcquireLimits
from broker_sim.share.partition.fetched_records import FetchedRecords
from tests.broker_sim.share.partition.conftest import MEMBER

SIZE, BATCHES = 5, 40
DATA = [build_batch([b"v"] * SIZE, base_offset=first) for first in range(0, SIZE * BATCHES, SIZE)]
RELEASE = 2
OTHER = "other"


@pytest.mark.parametrize("records", [DATA, [b"".join(DATA)]], ids=["pieces", "one piece"])
@pytest.mark.parametrize(("last_offset", "count"), [(0, 1), (4, 1), (5, 2), (13, 3), (999, 40)])
def test_batches_are_parsed_up_to_the_last_offset(records, last_offset, count):
    fetched = FetchedRecords(records, last_offset=last_offset)
    assert len(fetched.batches) == count
    assert len(FetchedRecords(records).batches) == BATCHES


def test_slice_contains_only_the_parsed_batch():
    fetched = FetchedRecords([b"".join(DATA)], last_offset=2)
    assert list(fetched.slice(0, 4)) == [DATA[0]]


def test_slice_of_a_single_batch_keeps_trailing_bytes():
    records = [DATA[0] + DATA[1][:20]]
    assert FetchedRecords(records, last_offset=2).slice(0, 4) is records


@pytest.mark.parametrize("is_limit", [False, True])
@pytest.mark.parametrize("max_records", [1, 4, 5, 6, 23, 10_000])
@pytest.mark.parametrize("held", [0, 5, 12])
def test_member_acquires_the_same_as_if_all_batches_were_parsed(make_bench, held, max_records, is_limit):
    acquired = []
    for is_whole in (False, True):
        bench = make_bench().open()
        for member in (OTHER, "third"):
            if held:
                fetched = FetchedRecords(DATA)
                limits = AcquireLimits(member, held, held, is_limit)
                bench.partition.acquire(limits, bench.records.next_fetch_offset(), fetched)
        if held:
            bench.acknowledge(0, SIZE - 1, RELEASE, member=OTHER)
        offset = bench.records.next_fetch_offset()
        last_offset = bench.records.last_acquirable_offset(offset, max_records)
        fetched = FetchedRecords(DATA, last_offset=None if is_whole else last_offset)
        limits = AcquireLimits(MEMBER, max_records, max_records, is_limit)
        acquired.append((bench.partition.acquire(limits, offset, fetched), bench.states))
    assert acquired[0] == acquired[1]
    assert acquired[0][0]

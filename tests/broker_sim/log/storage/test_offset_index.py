"""The sparse index against Kafka's rule, batch by batch."""

from array import array
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_sim.log.storage.batch_entries import OffsetIndex

BASE = 1_000
sizes_of_batches = st.lists(st.integers(61, 300), min_size=1, max_size=40)


def positions_of(sizes):
    return array("q", accumulate(sizes, initial=BASE))


def entries_of(sizes, interval_bytes):
    """Return the numbers of the batches with an entry, as `LogSegment.append` makes them."""
    entries, since_last = [], 0
    for number, size in enumerate(sizes):
        if since_last > interval_bytes:
            entries.append(number)
            since_last = 0
        since_last += size
    return entries


@pytest.mark.parametrize(
    ("position", "batch"), [(BASE, 3), (BASE + 300, 3), (BASE + 301, 6), (BASE + 600, 6), (BASE + 601, None)]
)
def test_first_entry_at_or_after_a_position(position, batch):
    index = OffsetIndex(interval_bytes=250)
    assert index.first_at_or_after(position, positions_of([100] * 8)) == batch


def test_interval_must_be_exceeded():
    positions = positions_of([100] * 6)
    assert OffsetIndex(300).first_at_or_after(BASE, positions) == 4
    assert OffsetIndex(299).first_at_or_after(BASE, positions) == 3


@given(sizes_of_batches, st.integers(0, 1_000), st.lists(st.integers(0, 4_000), max_size=5))
def test_entries_are_kafkas_in_any_order_of_lookups(sizes, interval_bytes, asked):
    index, positions = OffsetIndex(interval_bytes), positions_of(sizes)
    for offset in asked:
        position = BASE + offset
        later = [n for n in entries_of(sizes, interval_bytes) if positions[n] >= position]
        assert index.first_at_or_after(position, positions) == (later[0] if later else None)


@given(sizes_of_batches, sizes_of_batches, st.floats(0, 1), st.integers(0, 600))
def test_index_interval_restarts_after_a_truncation(sizes, later, share, interval_bytes):
    index = OffsetIndex(interval_bytes)
    index.first_at_or_after(positions_of(sizes)[-1], positions_of(sizes))
    keep = round(share * len(sizes))
    index.truncate_to(keep)
    remaining = sizes[:keep] + later
    positions = positions_of(remaining)
    entries = entries_of(remaining, interval_bytes)
    assert index.first_at_or_after(BASE, positions) == (entries[0] if entries else None)
    assert index.first_at_or_after(positions[-1], positions) is None

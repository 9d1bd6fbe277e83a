"""How a share partition is initialized, and how it follows the log start offset and aborted transactions."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.log import AbortedTxn
from broker_sim.protocol.record_batch import rebase
from broker_sim.protocol.records import build_batch, build_end_txn_marker
from broker_sim.share.partition.acquisition import AcquireLimits
from broker_sim.share.partition.fetched_records import FetchedRecords
from broker_sim.share.partition.share_partition import SharePartitionState
from broker_sim.share.share_state import ReadState, StateBatch
from tests.broker_sim.share.named_values import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    Offsets,
    acquired,
    standing,
    state_batch,
)
from tests.broker_sim.share.partition.conftest import EARLIEST, LATEST, MEMBER, code_of

ACCEPT, RELEASE = 1, 2
LOCK_MS = 30_000
ARCHIVING = 3


# -- initialization -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reset", "offset"), [(None, LATEST), ("latest", LATEST), ("earliest", EARLIEST), ("by_duration:PT1M0.25S", 50)]
)
def test_group_without_start_offset_uses_share_auto_offset_reset(make_bench, reset, offset):
    bench = make_bench()
    bench.offsets_by_time[bench.timer.clock.wall_clock_ms() - 60_250] = 50
    if reset is not None:
        bench.configs["share.auto.offset.reset"] = reset
    bench.open(start_offset=-1)
    assert bench.offsets == Offsets(start=offset, end=offset, next_fetch=offset)


def test_written_state_is_restored(make_bench):
    bench = make_bench().open((10, 14, ACKNOWLEDGED, 1), (15, 19, AVAILABLE, 2), (20, 29, ARCHIVED, 5), start_offset=10)
    assert bench.offsets == Offsets(start=15, end=29, next_fetch=15)
    assert bench.records.delivery_complete_count == 10
    assert bench.acquire((15, 19), (20, 29), (30, 39)) == [acquired(15, 19, deliveries=3), acquired(30, 39)]


def test_writes_contain_the_state_and_leader_epochs(make_bench):
    bench = make_bench().open((10, 14, AVAILABLE, 1), start_offset=10)
    bench.acquire((10, 14), (15, 19))
    bench.acknowledge(15, 19, ACCEPT)
    written = bench.coordinator.written[-1]
    assert (written.state_epoch, written.leader_epoch) == (5, 3)
    assert (written.start_offset, written.delivery_complete_count) == (10, 5)


def test_gaps_in_the_state_are_fetched_again(make_bench):
    """Members had acquired 10-14 and 20-24 from the previous leader, which had not written their state."""
    bench = make_bench().open((15, 19, ACKNOWLEDGED, 1), (25, 29, ACKNOWLEDGED, 1), start_offset=10)
    assert bench.offsets == Offsets(start=10, end=29, next_fetch=10)
    assert bench.acquire((10, 14), (15, 19)) == [acquired(10, 14)]
    assert bench.offsets == Offsets(start=10, end=29, next_fetch=20)
    assert bench.acquire((20, 24), (25, 29), (30, 34)) == [acquired(20, 24), acquired(30, 34)]
    assert bench.records.gap_window is None
    bench.acknowledge(10, 14, ACCEPT)
    assert bench.offsets == Offsets(start=20, end=34, next_fetch=35)


def test_gap_of_one_record(make_bench):
    bench = make_bench().open((11, 14, ACKNOWLEDGED, 1), start_offset=10)
    assert bench.offsets == Offsets(start=10, end=14, next_fetch=10)
    assert bench.acquire((10, 14)) == [acquired(10, 10)]


def test_gap_that_was_partly_fetched(make_bench):
    bench = make_bench().open(state_batch(10, 14, ACKNOWLEDGED))
    assert bench.acquire((0, 4)) == [acquired(0, 4)]
    assert bench.offsets == Offsets(start=0, end=14, next_fetch=5)
    assert bench.acquire((5, 9)) == [acquired(5, 9)]
    assert bench.offsets == Offsets(start=0, end=14, next_fetch=15)


def test_gap_is_acquired_up_to_the_completed_records(make_bench):
    bench = make_bench().open((15, 30, ACKNOWLEDGED, 1), start_offset=10)
    assert bench.acquire((10, 30), max_records=1) == [acquired(10, 14)]
    assert bench.offsets == Offsets(start=10, end=30, next_fetch=31)


def test_start_offset_stops_at_a_gap(make_bench):
    bench = make_bench().open((10, 14, AVAILABLE, 1), (25, 29, ACKNOWLEDGED, 1), start_offset=10)
    bench.acquire((10, 14))
    bench.acknowledge(10, 14, ACCEPT)
    assert bench.offsets == Offsets(start=15, end=29, next_fetch=15)


def test_natural_gap_is_not_acquired(bench):
    """The log has no records 5 to 9: a range from one fetch would include them, ranges from two fetches do not."""
    bench.acquire((0, 4))
    bench.acquire((10, 14))
    bench.release()
    assert bench.acquire((0, 4), (10, 14)) == [acquired(0, 4, deliveries=2), acquired(10, 14, deliveries=2)]


@pytest.mark.parametrize(
    "batch",
    [(5, 9, AVAILABLE, 1), (12, 11, AVAILABLE, 1), (10, 11, 5, 1)],
    ids=["before start", "reversed", "invalid state"],
)
def test_invalid_state_fails_permanently(make_bench, batch):
    bench = make_bench()
    bench.coordinator.read = ReadState(start_offset=10, state_batches=(StateBatch(*batch),))
    for _ in range(2):
        result = bench.result(bench.partition.maybe_initialize)
        assert code_of(result) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert bench.partition.state is SharePartitionState.FAILED


def test_archiving_records_of_the_written_state_are_not_delivered(make_bench):
    bench = make_bench().open((0, 4, ARCHIVING, 1), (5, 9, AVAILABLE, 1))
    assert bench.acquire((0, 4), (5, 9), at=0) == [acquired(5, 9, deliveries=2)]
    bench.acknowledge(5, 9, ACCEPT)
    assert bench.offsets == Offsets(start=0, end=9, next_fetch=10)
    assert bench.acknowledge(0, 4, ACCEPT) == ErrorCode.INVALID_RECORD_STATE


def test_coordinator_error_fails_initialization(make_bench):
    bench = make_bench()
    bench.coordinator.read = ReadState(ErrorCode.FENCED_LEADER_EPOCH, "too old")
    result = bench.result(bench.partition.maybe_initialize)
    assert (code_of(result), str(result)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, "too old")


def test_state_is_read_only_once(make_bench):
    bench = make_bench()
    bench.coordinator.is_held = True
    assert bench.result(bench.partition.maybe_initialize) == "pending"
    result = bench.result(bench.partition.maybe_initialize)
    assert code_of(result) == ErrorCode.LEADER_NOT_AVAILABLE
    assert not bench.partition.maybe_acquire_fetch_lock("fetch")
    bench.coordinator.release()
    assert bench.result(bench.partition.maybe_initialize) is None


def test_fenced_share_partition_rejects_everything(bench):
    bench.partition.mark_fenced()
    assert bench.acquire((0, 4)) == []
    assert not bench.partition.maybe_acquire_fetch_lock("fetch")
    result = bench.result(bench.partition.maybe_initialize)
    assert code_of(result) == ErrorCode.LEADER_NOT_AVAILABLE


def test_fetch_lock_allows_one_fetch_at_a_time(bench):
    assert bench.partition.maybe_acquire_fetch_lock("first")
    assert not bench.partition.maybe_acquire_fetch_lock("second")
    bench.partition.release_fetch_lock("first")
    assert bench.partition.maybe_acquire_fetch_lock("second")


# -- the log start offset -------------------------------------------------------------------------


def test_empty_share_partition_follows_the_log_start_offset(bench):
    bench.partition.log_start_moved(20)
    assert bench.offsets == Offsets(start=20, end=20, next_fetch=20)
    bench.partition.log_start_moved(10)
    assert bench.offsets == Offsets(start=20, end=20, next_fetch=20)


def test_available_records_before_the_log_start_are_archived(bench):
    bench.acquire((0, 4))
    bench.acquire((5, 9))
    bench.release()
    bench.partition.log_start_moved(7)
    assert bench.states[0, 4] == standing("ARCHIVED")
    assert bench.states[6, 6] == standing("ARCHIVED")
    assert bench.states[7, 7] == standing("AVAILABLE")
    assert bench.offsets == Offsets(start=7, end=9, next_fetch=7)
    assert bench.acquire((5, 9)) == [acquired(7, 9, deliveries=2)]
    bench.acknowledge(7, 9, ACCEPT)
    assert bench.offsets == Offsets(start=10, end=10, next_fetch=10)


def test_acquired_records_before_the_log_start_stay_acquired(bench):
    bench.acquire((0, 4))
    bench.acquire((5, 9))
    bench.partition.log_start_moved(7)
    assert bench.states == {(0, 4): standing("ACQUIRED", member=MEMBER), (5, 9): standing("ACQUIRED", member=MEMBER)}
    assert bench.acknowledge(0, 4, ACCEPT) is None
    assert bench.coordinator.written == []
    bench.timer.advance(LOCK_MS)
    first, second = bench.coordinator.written
    assert [tuple(batch) for batch in first.state_batches] == [(0, 4, ARCHIVED, 1)]
    assert [tuple(batch) for batch in second.state_batches] == [
        state_batch(5, 6, ARCHIVED),
        state_batch(7, 9, AVAILABLE),
    ]
    assert bench.offsets == Offsets(start=7, end=9, next_fetch=7)
    assert bench.records.delivery_complete_count == 0


def test_release_of_a_batch_that_contains_the_log_start_offset(bench):
    bench.acquire((0, 4))
    bench.partition.log_start_moved(3)
    assert bench.release() is None
    assert bench.last_written[1] == [state_batch(0, 2, ARCHIVED), state_batch(3, 4, AVAILABLE)]
    assert bench.records.delivery_complete_count == 0


def test_log_start_offset_behind_all_in_flight_records(bench):
    bench.acquire((0, 4))
    bench.partition.log_start_moved(15)
    assert bench.offsets == Offsets(start=15, end=15, next_fetch=15)
    assert bench.acquire((15, 19)) == [acquired(15, 19)]


def test_completed_records_before_the_log_start_are_not_counted(bench):
    for batch in ((0, 4), (5, 9), (10, 14)):
        bench.acquire(batch)
    bench.acknowledge(5, 9, ACCEPT)
    bench.acknowledge(11, 12, ACCEPT)
    assert bench.records.delivery_complete_count == 7
    bench.partition.log_start_moved(12)
    assert bench.records.delivery_complete_count == 1


def test_records_archived_during_a_write_stay_archived(bench):
    bench.acquire((0, 4))
    bench.coordinator.is_held = True
    bench.acknowledge(0, 4, RELEASE)
    bench.partition.log_start_moved(5)
    bench.coordinator.release(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.states == {(0, 4): standing("ARCHIVED")}


# -- aborted transactions -------------------------------------------------------------------------


def transactional(first, count, producer_id):
    return build_batch(
        [b"v"] * count,
        base_offset=first,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker(offset, producer_id, *, is_commit):
    batch = build_end_txn_marker(is_commit=is_commit, producer_id=producer_id, producer_epoch=0, timestamp=0)
    return rebase(memoryview(batch), offset, 0)


def acquire(bench, batches, aborted):
    fetched = FetchedRecords(batches, aborted)
    limits = AcquireLimits(MEMBER, 500, 500)
    return [tuple(one) for one in bench.partition.acquire(limits, 0, fetched)]


def test_aborted_records_are_archived_and_not_delivered(bench):
    batches = [
        transactional(0, 2, 1),
        transactional(2, 3, 2),
        build_batch([b"v"] * 2, base_offset=5),
        transactional(7, 1, 1),
        marker(8, 1, is_commit=False),
        marker(9, 2, is_commit=True),
        transactional(10, 2, 1),
        marker(12, 1, is_commit=True),
    ]
    aborted = [AbortedTxn(producer_id=1, first_offset=0, last_offset=8, last_stable_offset=9)]
    assert acquire(bench, batches, aborted) == [acquired(2, 6), acquired(8, 12)]
    assert bench.states[0, 0] == bench.states[7, 7] == standing("ARCHIVED")
    assert bench.records.delivery_complete_count == 3
    assert bench.acknowledge(2, 6, ACCEPT) is None
    assert bench.offsets == Offsets(start=8, end=12, next_fetch=13)


def test_fetch_of_only_aborted_records_acquires_nothing(bench):
    aborted = [AbortedTxn(1, 0, 4, 5)]
    assert acquire(bench, [transactional(0, 4, 1)], aborted) == []
    assert bench.states == {(0, 3): standing("ARCHIVED")}
    assert bench.offsets == Offsets(start=0, end=3, next_fetch=4)


def test_read_uncommitted_delivers_aborted_records(bench):
    assert acquire(bench, [transactional(0, 4, 1)], None) == [acquired(0, 3)]


def test_last_acquirable_offset_is_limited_by_max_record_locks(bench):
    """This holds for any number of requested records and any number of small batches."""
    bench.configs["share.partition.max.record.locks"] = "100"
    bench.acquire((0, 9))
    last = bench.partition.last_acquirable_offset
    assert (last(10, 20), last(10, 2**31 - 1), last(0, 2**31 - 1)) == (29, 109, 109)

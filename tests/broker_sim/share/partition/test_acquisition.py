"""Which fetched records members acquire: whole batches, limited numbers of records, and redelivered records."""

from broker_sim.share.partition.acquisition import accumulate
from broker_sim.share.partition.fetched_records import AcquiredRange
from tests.broker_sim.share.named_values import Offsets, acquired, standing
from tests.broker_sim.share.partition.conftest import MEMBER

RELEASE, ACCEPT = 2, 1
OTHER = "other"


def test_batches_of_a_fetch_are_acquired_as_one_range(bench):
    assert bench.acquire((0, 4), (5, 9)) == [acquired(0, 9)]
    assert bench.states == {(0, 9): standing("ACQUIRED", member=MEMBER)}
    assert bench.offsets == Offsets(start=0, end=9, next_fetch=10)


def test_batch_size_splits_ranges_only_at_batches_of_the_log(bench):
    batches = (0, 2), (3, 5), (6, 8), (9, 11)
    assert bench.acquire(*batches, batch_size=4) == [acquired(0, 5), acquired(6, 11)]
    assert list(bench.states) == [(0, 5), (6, 11)]


def test_range_ends_when_it_reaches_the_batch_size(bench):
    assert bench.acquire((0, 3), (4, 7), batch_size=4) == [acquired(0, 3), acquired(4, 7)]


def test_max_records_is_exceeded_up_to_the_end_of_the_batch(bench):
    assert bench.acquire((0, 4), (5, 9), (10, 14), max_records=6) == [acquired(0, 9)]
    assert bench.offsets == Offsets(start=0, end=9, next_fetch=10)


def test_limit_splits_the_batch_and_leaves_the_rest_available(bench):
    assert bench.acquire((0, 4), (5, 9), max_records=3, is_limit=True) == [acquired(0, 2)]
    assert bench.states == {
        (offset, offset): standing("ACQUIRED", member=MEMBER) if offset < 3 else standing("AVAILABLE", deliveries=0)
        for offset in range(5)
    }
    assert bench.offsets == Offsets(start=0, end=4, next_fetch=3)
    assert bench.timer.size() == 1
    assert bench.acquire((0, 4), (5, 9), max_records=3, is_limit=True, member=OTHER) == [
        acquired(3, 4), acquired(5, 5),
    ]  # fmt: skip
    assert bench.offsets == Offsets(start=0, end=9, next_fetch=6)


def test_batch_within_the_limit_is_not_split(bench):
    assert bench.acquire((0, 4), max_records=5, is_limit=True, batch_size=1) == [acquired(0, 4)]
    assert bench.states == {(0, 4): standing("ACQUIRED", member=MEMBER)}


def test_limit_splits_a_released_batch(bench):
    bench.acquire((0, 4))
    bench.release()
    assert bench.acquire((0, 4), max_records=2, is_limit=True) == [acquired(0, 1, deliveries=2)]
    assert bench.states[2, 2] == standing("AVAILABLE")
    assert bench.offsets == Offsets(start=0, end=4, next_fetch=2)


def test_released_batch_is_delivered_again(bench):
    bench.acquire((0, 4))
    bench.acquire((5, 9))
    bench.acknowledge(0, 4, RELEASE)
    assert bench.offsets == Offsets(start=0, end=9, next_fetch=0)
    assert bench.acquire((0, 4), (5, 9), member=OTHER) == [acquired(0, 4, deliveries=2)]
    assert bench.states == {
        (0, 4): standing("ACQUIRED", deliveries=2, member=OTHER),
        (5, 9): standing("ACQUIRED", member=MEMBER),
    }
    assert bench.offsets == Offsets(start=0, end=9, next_fetch=10)


def test_fetch_continues_behind_in_flight_records(bench):
    bench.acquire((0, 4))
    bench.acknowledge(0, 4, RELEASE)
    assert bench.acquire((0, 4), (5, 9)) == [acquired(0, 4, deliveries=2), acquired(5, 9)]


def test_released_records_of_a_batch_are_delivered_in_ranges(bench):
    bench.acquire((0, 9))
    bench.acknowledge(2, 3, RELEASE)
    bench.acknowledge(6, 6, RELEASE)
    assert bench.offsets == Offsets(start=0, end=9, next_fetch=2)
    assert bench.acquire((0, 9), member=OTHER) == [acquired(2, 3, deliveries=2), acquired(6, 6, deliveries=2)]
    assert bench.timer.size() == 5  # one for each range


def test_fetch_of_part_of_a_released_batch_splits_it(bench):
    bench.acquire((0, 9))
    bench.release()
    assert bench.acquire((0, 4), member=OTHER) == [acquired(0, 4, deliveries=2)]
    assert bench.states[5, 5] == standing("AVAILABLE")


def test_acquired_batch_is_not_split_by_another_fetch(bench):
    bench.acquire((0, 9))
    assert bench.acquire((0, 4), member=OTHER, at=0) == []
    assert list(bench.states) == [(0, 9)]


def test_records_being_written_are_not_acquired(bench):
    bench.acquire((0, 4))
    bench.coordinator.is_held = True
    bench.acknowledge(0, 4, RELEASE)
    assert bench.offsets == Offsets(start=0, end=4, next_fetch=5)
    assert bench.acquire((0, 4), at=0) == []
    bench.coordinator.release()
    assert bench.offsets == Offsets(start=0, end=4, next_fetch=0)
    assert bench.acquire((0, 4)) == [acquired(0, 4, deliveries=2)]


def test_in_flight_records_are_limited_by_max_record_locks(bench):
    bench.configs["share.partition.max.record.locks"] = "100"
    assert bench.acquire((0, 89)) == [acquired(0, 89)]
    assert bench.partition.can_acquire_records()
    assert bench.acquire((90, 94), (95, 99), (100, 104)) == [acquired(90, 99)]
    assert not bench.partition.can_acquire_records()
    assert bench.acquire((100, 104)) == []
    bench.acknowledge(20, 20, RELEASE)
    assert bench.partition.can_acquire_records()
    assert bench.acquire((0, 89), (90, 94), (95, 99), (100, 104)) == [acquired(20, 20, deliveries=2)]
    assert not bench.partition.can_acquire_records()


def test_acquired_range_begins_at_a_start_offset_inside_a_batch(make_bench):
    bench = make_bench().open(start_offset=3)
    assert bench.acquire((0, 9)) == [acquired(3, 9)]
    assert bench.offsets == Offsets(start=3, end=9, next_fetch=10)


def test_completed_records_are_not_acquired_again(bench):
    bench.acquire((0, 4))
    bench.acknowledge(0, 4, ACCEPT)
    assert bench.offsets == Offsets(start=5, end=5, next_fetch=5)
    assert bench.acquire((0, 9)) == [acquired(5, 9)]
    assert bench.acquire((0, 4), at=0) == []


def test_compacted_records_are_archived(bench):
    bench.acquire((0, 9))
    bench.acquire((10, 19))
    bench.release()
    assert bench.acquire((15, 19), at=0) == [acquired(15, 19, deliveries=2)]
    assert bench.states[0, 9] == standing("ARCHIVED")
    assert bench.states[14, 14] == standing("ARCHIVED")
    assert bench.records.delivery_complete_count == 15


def deliver(bench, times, *batches, **options):
    """Acquire and release all available records `times` times."""
    for _ in range(times):
        while bench.acquire(*batches, **options):
            pass
        bench.release()


def test_repeatedly_delivered_records_come_in_smaller_ranges(bench):
    """With a limit of 5 the third delivery is the whole batch, the fourth half of it, the fifth single records."""
    batch = (0, 15)
    deliver(bench, 2, batch)
    assert bench.acquire(batch) == [acquired(0, 15, deliveries=3)]
    bench.release()
    assert bench.acquire(batch) == [acquired(0, 7, deliveries=4)]
    assert bench.acquire(batch) == [acquired(8, 15, deliveries=4)]
    bench.release()
    assert [bench.acquire(batch) for _ in range(16)] == [[acquired(n, n, deliveries=5)] for n in range(16)]


def test_isolated_record_is_delivered_alone(bench):
    bench.configs["share.delivery.count.limit"] = "3"
    bench.acquire((0, 3))
    bench.release()
    bench.acquire((0, 3))
    bench.acknowledge(2, 2, RELEASE)
    bench.acknowledge(3, 3, ACCEPT)
    assert bench.acquire((0, 3), (4, 9)) == [acquired(2, 2, deliveries=3)]
    assert bench.acquire((0, 3), (4, 9)) == [acquired(4, 9)]


def test_throttled_batch_gets_a_separate_fetch(bench):
    bench.configs["share.delivery.count.limit"] = "5"
    bench.acquire((0, 3))
    bench.acquire((4, 7))
    for _ in range(2):
        bench.acknowledge(4, 7, RELEASE)
        bench.acquire((4, 7))
    bench.release()
    assert bench.acquire((0, 3), (4, 7), (8, 9)) == [acquired(0, 3, deliveries=2)]
    assert bench.acquire((0, 3), (4, 7), (8, 9)) == [acquired(4, 5, deliveries=4)]
    assert bench.acquire((0, 3), (4, 7), (8, 9)) == [acquired(6, 7, deliveries=4)]
    assert bench.acquire((0, 3), (4, 7), (8, 9)) == [acquired(8, 9)]


def test_records_are_not_isolated_with_a_limit_of_two_deliveries(bench):
    bench.configs["share.delivery.count.limit"] = "2"
    bench.acquire((0, 3))
    bench.release()
    assert bench.acquire((0, 3)) == [acquired(0, 3, deliveries=2)]


def test_adjacent_ranges_are_merged():
    ranges = [AcquiredRange(0, 0, 1)]
    accumulate(ranges, [AcquiredRange(1, 1, 1), AcquiredRange(2, 3, 1), AcquiredRange(4, 4, 2)])
    assert ranges == [acquired(0, 0), acquired(1, 3), acquired(4, 4, deliveries=2)]


def test_record_due_for_its_last_delivery_is_acquired_separately(make_bench):
    bench = make_bench()
    bench.configs["share.delivery.count.limit"] = "3"
    bench.open()
    bench.acquire((0, 2))
    bench.acknowledge(2, 2, RELEASE)
    bench.acquire((0, 2))
    bench.release()
    assert bench.states[2, 2] == standing("AVAILABLE", deliveries=2)
    assert bench.acquire((0, 2)) == [acquired(0, 1, deliveries=2)]
    assert bench.acquire((0, 2)) == [acquired(2, 2, deliveries=3)]

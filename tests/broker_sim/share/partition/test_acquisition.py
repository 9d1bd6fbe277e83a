"""What members get of what was fetched: whole batches, limited records, and records that were delivered before."""

from broker_sim.share.partition.acquisition import accumulate
from broker_sim.share.partition.fetched_records import AcquiredRange
from tests.broker_sim.share.partition.conftest import MEMBER

RELEASE, ACCEPT = 2, 1
OTHER = "other"


def test_batches_of_a_fetch_are_acquired_as_one(bench):
    assert bench.acquire((0, 4), (5, 9)) == [(0, 9, 1)]
    assert bench.states == {(0, 9): ("ACQUIRED", 1, MEMBER)}
    assert bench.offsets == (0, 9, 10)


def test_batch_size_divides_where_batches_of_the_log_begin(bench):
    batches = (0, 2), (3, 5), (6, 8), (9, 11)
    assert bench.acquire(*batches, batch_size=4) == [(0, 5, 1), (6, 11, 1)]
    assert list(bench.states) == [(0, 5), (6, 11)]


def test_range_ends_where_it_has_the_batch_size(bench):
    assert bench.acquire((0, 3), (4, 7), batch_size=4) == [(0, 3, 1), (4, 7, 1)]


def test_max_records_is_exceeded_to_the_end_of_the_batch(bench):
    assert bench.acquire((0, 4), (5, 9), (10, 14), max_records=6) == [(0, 9, 1)]
    assert bench.offsets == (0, 9, 10)


def test_limit_splits_the_batch_and_leaves_the_rest_available(bench):
    assert bench.acquire((0, 4), (5, 9), max_records=3, is_limit=True) == [(0, 2, 1)]
    assert bench.states == {
        (offset, offset): ("ACQUIRED", 1, MEMBER) if offset < 3 else ("AVAILABLE", 0, "") for offset in range(5)
    }
    assert bench.offsets == (0, 4, 3)
    assert bench.timer.size() == 1
    assert bench.acquire((0, 4), (5, 9), max_records=3, is_limit=True, member=OTHER) == [
        (3, 4, 1), (5, 5, 1),
    ]  # fmt: skip
    assert bench.offsets == (0, 9, 6)


def test_limit_that_the_fetch_does_not_reach_splits_nothing(bench):
    assert bench.acquire((0, 4), max_records=5, is_limit=True, batch_size=1) == [(0, 4, 1)]
    assert bench.states == {(0, 4): ("ACQUIRED", 1, MEMBER)}


def test_limit_splits_a_batch_that_was_released(bench):
    bench.acquire((0, 4))
    bench.release()
    assert bench.acquire((0, 4), max_records=2, is_limit=True) == [(0, 1, 2)]
    assert bench.states[2, 2] == ("AVAILABLE", 1, "")
    assert bench.offsets == (0, 4, 2)


def test_released_batch_is_delivered_once_more(bench):
    bench.acquire((0, 4))
    bench.acquire((5, 9))
    bench.acknowledge(0, 4, RELEASE)
    assert bench.offsets == (0, 9, 0)
    assert bench.acquire((0, 4), (5, 9), member=OTHER) == [(0, 4, 2)]
    assert bench.states == {(0, 4): ("ACQUIRED", 2, OTHER), (5, 9): ("ACQUIRED", 1, MEMBER)}
    assert bench.offsets == (0, 9, 10)


def test_fetch_goes_on_behind_what_is_in_flight(bench):
    bench.acquire((0, 4))
    bench.acknowledge(0, 4, RELEASE)
    assert bench.acquire((0, 4), (5, 9)) == [(0, 4, 2), (5, 9, 1)]


def test_released_records_of_a_batch_are_delivered_in_ranges(bench):
    bench.acquire((0, 9))
    bench.acknowledge(2, 3, RELEASE)
    bench.acknowledge(6, 6, RELEASE)
    assert bench.offsets == (0, 9, 2)
    assert bench.acquire((0, 9), member=OTHER) == [(2, 3, 2), (6, 6, 2)]
    assert bench.timer.size() == 5  # one for each range


def test_part_of_a_released_batch_is_read(bench):
    bench.acquire((0, 9))
    bench.release()
    assert bench.acquire((0, 4), member=OTHER) == [(0, 4, 2)]
    assert bench.states[5, 5] == ("AVAILABLE", 1, "")


def test_acquired_batch_is_not_split_for_nothing(bench):
    bench.acquire((0, 9))
    assert bench.acquire((0, 4), member=OTHER, at=0) == []
    assert list(bench.states) == [(0, 9)]


def test_what_is_being_written_is_not_acquired(bench):
    bench.acquire((0, 4))
    bench.coordinator.is_held = True
    bench.acknowledge(0, 4, RELEASE)
    assert bench.offsets == (0, 4, 5)
    assert bench.acquire((0, 4), at=0) == []
    bench.coordinator.release()
    assert bench.offsets == (0, 4, 0)
    assert bench.acquire((0, 4)) == [(0, 4, 2)]


def test_no_more_records_in_flight_than_the_group_allows(bench):
    bench.configs["share.partition.max.record.locks"] = "100"
    assert bench.acquire((0, 89)) == [(0, 89, 1)]
    assert bench.partition.can_acquire_records()
    assert bench.acquire((90, 94), (95, 99), (100, 104)) == [(90, 99, 1)]
    assert not bench.partition.can_acquire_records()
    assert bench.acquire((100, 104)) == []
    bench.acknowledge(20, 20, RELEASE)
    assert bench.partition.can_acquire_records()
    assert bench.acquire((0, 89), (90, 94), (95, 99), (100, 104)) == [(20, 20, 2)]
    assert not bench.partition.can_acquire_records()


def test_start_offset_inside_a_batch_of_the_log(make_bench):
    bench = make_bench().open(start_offset=3)
    assert bench.acquire((0, 9)) == [(3, 9, 1)]
    assert bench.offsets == (3, 9, 10)


def test_what_is_done_is_not_acquired_again(bench):
    bench.acquire((0, 4))
    bench.acknowledge(0, 4, ACCEPT)
    assert bench.offsets == (5, 5, 5)
    assert bench.acquire((0, 9)) == [(5, 9, 1)]
    assert bench.acquire((0, 4), at=0) == []


def test_records_that_were_compacted_away_are_archived(bench):
    bench.acquire((0, 9))
    bench.acquire((10, 19))
    bench.release()
    assert bench.acquire((15, 19), at=0) == [(15, 19, 2)]
    assert bench.states[0, 9] == ("ARCHIVED", 1, "")
    assert bench.states[14, 14] == ("ARCHIVED", 1, "")
    assert bench.records.delivery_complete_count == 15


def deliver(bench, times, *batches, **options):
    """Acquire and release what is available, that often."""
    for _ in range(times):
        while bench.acquire(*batches, **options):
            pass
        bench.release()


def test_records_delivered_often_come_in_smaller_numbers(bench):
    """With a limit of 5, from the third delivery on: half of the batch, a quarter, one by one."""
    batch = (0, 15)
    deliver(bench, 2, batch)
    assert bench.acquire(batch) == [(0, 15, 3)]
    bench.release()
    assert bench.acquire(batch) == [(0, 7, 4)]
    assert bench.acquire(batch) == [(8, 15, 4)]
    bench.release()
    assert [bench.acquire(batch) for _ in range(16)] == [[(n, n, 5)] for n in range(16)]


def test_isolated_record_is_delivered_alone(bench):
    bench.configs["share.delivery.count.limit"] = "3"
    bench.acquire((0, 3))
    bench.release()
    bench.acquire((0, 3))
    bench.acknowledge(2, 2, RELEASE)
    bench.acknowledge(3, 3, ACCEPT)
    assert bench.acquire((0, 3), (4, 9)) == [(2, 2, 3)]
    assert bench.acquire((0, 3), (4, 9)) == [(4, 9, 1)]


def test_throttled_batch_waits_for_a_fetch_of_its_own(bench):
    bench.configs["share.delivery.count.limit"] = "5"
    bench.acquire((0, 3))
    bench.acquire((4, 7))
    for _ in range(2):
        bench.acknowledge(4, 7, RELEASE)
        bench.acquire((4, 7))
    bench.release()
    assert bench.acquire((0, 3), (4, 7), (8, 9)) == [(0, 3, 2)]
    assert bench.acquire((0, 3), (4, 7), (8, 9)) == [(4, 5, 4)]
    assert bench.acquire((0, 3), (4, 7), (8, 9)) == [(6, 7, 4)]
    assert bench.acquire((0, 3), (4, 7), (8, 9)) == [(8, 9, 1)]


def test_limit_of_two_deliveries_isolates_nothing(bench):
    bench.configs["share.delivery.count.limit"] = "2"
    bench.acquire((0, 3))
    bench.release()
    assert bench.acquire((0, 3)) == [(0, 3, 2)]


def test_ranges_next_to_each_other_become_one():
    ranges = [AcquiredRange(0, 0, 1)]
    accumulate(ranges, [AcquiredRange(1, 1, 1), AcquiredRange(2, 3, 1), AcquiredRange(4, 4, 2)])
    assert ranges == [(0, 0, 1), (1, 3, 1), (4, 4, 2)]


def test_record_before_its_last_delivery_waits_for_those_beside_it(make_bench):
    bench = make_bench()
    bench.configs["share.delivery.count.limit"] = "3"
    bench.open()
    bench.acquire((0, 2))
    bench.acknowledge(2, 2, RELEASE)
    bench.acquire((0, 2))
    bench.release()
    assert bench.states[2, 2] == ("AVAILABLE", 2, "")
    assert bench.acquire((0, 2)) == [(0, 1, 2)]
    assert bench.acquire((0, 2)) == [(2, 2, 3)]

"""What a look inside shows, against worked cases, and that it is frozen."""

import dataclasses
from itertools import pairwise

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, VirtualTimer
from broker_sim_purgatory.inspect import inspect_purgatory, inspect_timer


@pytest.fixture
def timer():
    return VirtualTimer()


@pytest.fixture
def clock(timer):
    return timer.clock


def _where(snapshot):
    return {
        task.delay_ms: (wheel.level, bucket.index, bucket.start_ms, bucket.end_ms)
        for wheel in snapshot.wheels
        for bucket in wheel.buckets
        for task in bucket.tasks
    }


def test_tasks_are_shown_in_the_buckets_of_the_worked_cases(timer, task):
    for delay_ms in (8, 350, 450):
        timer.add(task(delay_ms))
    snapshot = inspect_timer(timer)
    assert _where(snapshot) == {8: (1, 8, 8, 9), 350: (2, 17, 340, 360), 450: (3, 1, 400, 800)}
    assert [(wheel.tick_ms, wheel.end_ms) for wheel in snapshot.wheels] == [(1, 20), (20, 400), (400, 8_000)]
    assert [wheel.size for wheel in snapshot.wheels] == [1, 1, 1]
    assert snapshot.size == 3


def test_buckets_tell_the_range_that_they_take_next_as_the_wheel_turns(timer, task):
    timer.add(task(450))
    timer.add(task(2_000))
    timer.advance(445)
    snapshot = inspect_timer(timer)
    assert snapshot.now_ms == 445
    fine, middle, coarse = snapshot.wheels
    assert (fine.current_time_ms, middle.current_time_ms, coarse.current_time_ms) == (440, 440, 400)
    assert (fine.current_index, middle.current_index, coarse.current_index) == (0, 2, 1)
    assert [(b.start_ms, b.end_ms) for b in fine.buckets[:2]] == [(440, 441), (441, 442)]
    assert (middle.buckets[1].start_ms, middle.buckets[2].start_ms) == (820, 440)
    assert _where(snapshot)[450] == (1, 10, 450, 451)


def test_ranges_of_a_level_follow_one_another_without_gap_wherever_it_stands(timer, task):
    for delay_ms in (30_000, 777, 23):
        timer.add(task(delay_ms))
    for _ in range(40):
        timer.advance(613)
        for wheel in inspect_timer(timer).wheels:
            starts = sorted((bucket.start_ms, bucket.end_ms) for bucket in wheel.buckets)
            assert starts[0][0] == wheel.current_time_ms
            assert starts[-1][1] == wheel.end_ms
            assert all(end == start for (_, end), (start, _) in pairwise(starts))


def test_an_emptied_bucket_stays_in_the_delay_queue_and_is_shown_so(timer, task):
    cancelled = task(5)
    timer.add(cancelled)
    cancelled.cancel()
    bucket = inspect_timer(timer).wheels[0].buckets[5]
    assert (bucket.tasks, bucket.enqueued) == ((), True)


def test_watch_lists_are_shown_with_what_waits_and_what_waits_for_the_purge(timer, operation):
    purgatory = DelayedOperationPurgatory("test", timer)
    ops = [operation(1_000) for _ in range(3)]
    purgatory.try_complete_else_watch(ops[0], ("a", "b"))
    purgatory.try_complete_else_watch(ops[1], ("b",))
    purgatory.try_complete_else_watch(ops[2], ("b", "c"))
    ops[0].completable = True
    purgatory.check_and_complete("a")
    snapshot = inspect_purgatory(purgatory)
    assert [(each.key, each.waiting, each.completed) for each in snapshot.watch_lists] == [("b", 2, 1), ("c", 1, 0)]
    assert (snapshot.name, snapshot.timer.size, snapshot.statistics.watched) == ("test", 2, 4)
    task = next(b.tasks[0] for w in snapshot.timer.wheels for b in w.buckets if b.tasks)
    assert (task.name, task.operation_id, task.expiration_ms) == ("SwitchedOperation", 0, 1_000)


def test_a_snapshot_does_not_change(timer, task):
    timer.add(task(5))
    snapshot = inspect_timer(timer)
    timer.advance(10)
    assert snapshot.size == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.now_ms = 1

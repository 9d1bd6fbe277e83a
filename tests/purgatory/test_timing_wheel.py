"""The wheel by itself; where tasks go is the matter of test_worked_cases.py."""

import pytest
from broker_sim_purgatory import VirtualClock
from broker_sim_purgatory._delay_queue import DelayQueue
from broker_sim_purgatory._timer_task_entry import TaskOwner, TimerTaskEntry
from broker_sim_purgatory._timing_wheel import DUE, TimingWheel


@pytest.mark.parametrize(("expiration_ms", "accepted"), [(99, False), (100, False), (101, True)])
def test_a_task_due_within_the_current_tick_is_refused(wheel, place, expiration_ms, accepted):
    assert (place(wheel(start_ms=100), expiration_ms) is not None) is accepted


@pytest.mark.parametrize(("expiration_ms", "accepted"), [(119, False), (120, True)])
def test_the_current_tick_may_be_coarse(wheel, place, expiration_ms, accepted):
    made = wheel(tick_ms=20, start_ms=105)
    assert (place(made, expiration_ms) is not None) is accepted


def test_a_cancelled_task_is_refused(wheel):
    made = wheel()
    entry = TimerTaskEntry()
    entry.expiration_ms = 10
    entry.cancelled = True
    assert made.add(entry) == DUE
    assert entry.next is None


@pytest.mark.parametrize(("expiration_ms", "level"), [(19, 1), (20, 2), (399, 2), (400, 3)])
def test_a_level_takes_what_is_due_before_the_end_of_its_turn(wheel, place, expiration_ms, level):
    assert place(wheel(), expiration_ms)[0] == level


def test_a_bucket_is_enqueued_once_in_each_turn_of_the_wheel():
    owner = TaskOwner()
    queue = DelayQueue(VirtualClock(1_000), owner.lock)
    made = TimingWheel(1, 20, 0, owner, queue)

    def add(expiration_ms):
        entry = TimerTaskEntry()
        entry.expiration_ms = expiration_ms
        assert made.add(entry) != DUE
        return len(queue)

    assert [add(5), add(5), add(6)] == [1, 1, 2]
    assert [queue.poll_expired().expiration_ms for _ in range(2)] == [5, 6]
    made.advance_clock(6)
    assert [add(25), add(25)] == [1, 1]


def test_the_reach_moves_with_the_clock(wheel, place):
    made = wheel()
    made.advance_clock(7)
    assert place(made, 26)[0] == 1
    assert place(made, 27)[0] == 2


def test_all_levels_move_with_the_clock(wheel, place):
    made = wheel()
    place(made, 8_000)
    made.advance_clock(417)
    assert [level.current_time_ms for level in made.levels()] == [417, 400, 400, 0]


def test_the_clock_does_not_go_back(wheel):
    made = wheel(start_ms=100)
    made.advance_clock(40)
    assert made.current_time_ms == 100


@pytest.mark.parametrize("expiration_ms", [2**31, 2**63 - 1])
def test_very_long_delays_find_a_level(wheel, place, expiration_ms):
    made = wheel()
    level, _, start_ms = place(made, expiration_ms)
    tick_ms = made.levels()[level - 1].tick_ms
    assert start_ms <= expiration_ms < start_ms + tick_ms


def test_a_bucket_is_made_for_its_first_task(wheel, place):
    made = wheel()
    assert made.used_buckets() == []
    place(made, 7)
    place(made, 3)
    used = made.used_buckets()
    assert [bucket.index for bucket in used] == [3, 7]
    place(made, 7)
    assert made.used_buckets() == used
    assert [bucket.index for bucket in made.buckets()] == list(range(20))
    assert [made.buckets()[3], made.buckets()[7]] == used

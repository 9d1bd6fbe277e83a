"""Buckets and their tasks: what Kafka's TimerTaskListTest claims, and the links themselves."""

import pytest

from purgatory import TaskCounter, TimerTaskList


@pytest.fixture
def counter():
    return TaskCounter()


def test_tasks_are_counted_once_whichever_bucket_they_move_to(counter, task):
    first, second, third = (TimerTaskList(counter) for _ in range(3))
    tasks = [task(0, number) for number in range(10)]
    for number, each in enumerate(tasks, start=1):
        first.add(each)
        assert counter.count == number
    for each in tasks[:4]:
        second.add(each)
        assert counter.count == 10
    assert (list(first), list(second)) == (tasks[4:], tasks[:4])
    for each in tasks[4:]:
        third.add(each)
        assert counter.count == 10
    assert (list(first), list(second), list(third)) == ([], tasks[:4], tasks[4:])
    for each in tasks[:4]:
        each.cancel()
    assert (list(first), list(second), list(third)) == ([], [], tasks[4:])
    for each in tasks[4:]:
        each.cancel()
    assert list(third) == []
    assert counter.count == 0


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_task_leaves_from_any_position(counter, task, position):
    bucket = TimerTaskList(counter)
    tasks = [task(0, number) for number in range(3)]
    for each in tasks:
        bucket.add(each)
    left = tasks.pop(position)
    left.cancel()
    assert list(bucket) == tasks
    assert (left.next, left.prev) == (None, None)
    assert counter.count == 2


def test_cancelling_twice_or_without_a_timer_changes_nothing(counter, task):
    bucket = TimerTaskList(counter)
    never_added, cancelled, other = task(0), task(1), task(2)
    never_added.cancel()
    bucket.add(cancelled)
    bucket.add(other)
    cancelled.cancel()
    cancelled.cancel()
    assert list(bucket) == [other]
    assert counter.count == 1


def test_adding_a_task_to_its_own_bucket_moves_it_to_the_end(counter, task):
    bucket = TimerTaskList(counter)
    first, second = task(1), task(2)
    bucket.add(first)
    bucket.add(second)
    bucket.add(first)
    assert list(bucket) == [second, first]
    assert counter.count == 2


def test_flush_returns_the_tasks_in_order_and_resets_the_bucket(counter, task):
    bucket = TimerTaskList(counter)
    tasks = [task(0, number) for number in range(3)]
    for each in tasks:
        bucket.add(each)
    bucket.set_expiration(40)
    assert bucket.flush() == tasks
    assert bucket.is_empty()
    assert counter.count == 0
    assert all(each.next is None and each.prev is None for each in tasks)
    assert bucket.set_expiration(40) is True
    assert bucket.flush() == []


def test_expiration_counts_as_changed_only_when_it_differs(counter):
    bucket = TimerTaskList(counter)
    assert bucket.set_expiration(20) is True
    assert bucket.set_expiration(20) is False
    assert bucket.set_expiration(40) is True
    assert bucket.expiration_ms == 40


def test_a_bucket_may_lose_tasks_while_it_is_walked(counter, task):
    bucket = TimerTaskList(counter)
    tasks = [task(0, number) for number in range(4)]
    for each in tasks:
        bucket.add(each)
    walked = []
    for each in bucket:
        walked.append(each)
        each.cancel()
    assert walked == tasks
    assert bucket.is_empty()


class _HookedLock:
    """Notes when it is taken, after something has happened just before."""

    def __init__(self, taken, before=lambda: None):
        self._taken = taken
        self._before = before

    def acquire(self):
        self._before()
        self._taken.append(self)

    def release(self):
        pass


def test_a_task_that_moves_to_another_timer_while_it_is_cancelled_is_cancelled_there(task):
    taken = []
    here, there = TaskCounter(), TaskCounter()
    moved, bucket_here, bucket_there = task(0), TimerTaskList(here), TimerTaskList(there)
    here.lock = _HookedLock(taken, before=lambda: bucket_there.add(moved))
    there.lock = _HookedLock(taken)
    bucket_here.add(moved)
    moved.cancel()
    assert taken == [here.lock, there.lock]
    assert (list(bucket_here), list(bucket_there)) == ([], [])
    assert (here.count, there.count) == (0, 0)

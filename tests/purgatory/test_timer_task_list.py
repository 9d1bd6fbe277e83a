"""Buckets and their tasks: what Kafka's TimerTaskListTest claims, and the links themselves."""

import threading

import pytest
from broker_sim_purgatory._timer_task_entry import TaskOwner
from broker_sim_purgatory._timer_task_list import NOT_ENQUEUED, TimerTaskList


@pytest.fixture
def owner():
    return TaskOwner()


def test_tasks_are_counted_once_whichever_bucket_they_move_to(owner, task):
    first, second, third = (TimerTaskList(owner) for _ in range(3))
    tasks = [task(0, number) for number in range(10)]
    for number, each in enumerate(tasks, start=1):
        first.add(each)
        assert owner.count == number
    for each in tasks[:4]:
        second.add(each)
        assert owner.count == 10
    assert (list(first), list(second)) == (tasks[4:], tasks[:4])
    for each in tasks[4:]:
        third.add(each)
        assert owner.count == 10
    assert (list(first), list(second), list(third)) == ([], tasks[:4], tasks[4:])
    for each in tasks[:4]:
        each.cancel()
    assert (list(first), list(second), list(third)) == ([], [], tasks[4:])
    for each in tasks[4:]:
        each.cancel()
    assert list(third) == []
    assert owner.count == 0


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_task_leaves_from_any_position(owner, task, position):
    bucket = TimerTaskList(owner)
    tasks = [task(0, number) for number in range(3)]
    for each in tasks:
        bucket.add(each)
    left = tasks.pop(position)
    left.cancel()
    assert list(bucket) == tasks
    assert (left.next, left.prev) == (None, None)
    assert owner.count == 2


def test_cancelling_twice_or_without_a_timer_changes_nothing(owner, task):
    bucket = TimerTaskList(owner)
    never_added, cancelled, other = task(0), task(1), task(2)
    never_added.cancel()
    bucket.add(cancelled)
    bucket.add(other)
    cancelled.cancel()
    cancelled.cancel()
    assert list(bucket) == [other]
    assert owner.count == 1


def test_adding_a_task_to_its_own_bucket_moves_it_to_the_end(owner, task):
    bucket = TimerTaskList(owner)
    first, second = task(1), task(2)
    bucket.add(first)
    bucket.add(second)
    bucket.add(first)
    assert list(bucket) == [second, first]
    assert owner.count == 2


def test_flush_returns_the_tasks_in_order_and_resets_the_bucket(owner, task):
    bucket = TimerTaskList(owner)
    tasks = [task(0, number) for number in range(3)]
    for each in tasks:
        bucket.add(each)
    bucket.expiration_ms = 40
    assert bucket.flush() == tasks
    assert bucket.is_empty()
    assert owner.count == 0
    assert all(each.next is None and each.prev is None for each in tasks)
    assert bucket.expiration_ms == NOT_ENQUEUED  # its next task enqueues it again
    assert bucket.flush() == []


def test_a_bucket_may_lose_tasks_while_it_is_walked(owner, task):
    bucket = TimerTaskList(owner)
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
    """Something happens once, just before it is taken."""

    def __init__(self, before):
        self._lock = threading.Lock()
        self._before = before

    def acquire(self):
        before, self._before = self._before, lambda: None
        before()
        self._lock.acquire()

    def release(self):
        self._lock.release()


@pytest.mark.parametrize("others", [0, 1])
def test_a_task_that_moves_to_another_timer_while_it_is_cancelled_is_cancelled_there(task, others):
    here, there = TaskOwner(), TaskOwner()
    moved, bucket_here, bucket_there = task(0), TimerTaskList(here), TimerTaskList(there)
    bucket_here.add(moved)
    for number in range(others):
        bucket_here.add(task(0, number))

    def move():
        there.adopt(moved)
        bucket_there.add(moved)

    locked_there = []
    here.lock = _HookedLock(move)
    there.lock = _HookedLock(lambda: locked_there.append(True))
    moved.cancel()
    assert moved.cancelled
    assert locked_there == [True]
    assert moved not in [*bucket_here, *bucket_there]
    assert (here.count, there.count) == (others, 0)


def test_a_task_that_is_adopted_leaves_the_bucket_of_its_timer(task):
    here, there = TaskOwner(), TaskOwner()
    moved, bucket = task(0), TimerTaskList(here)
    bucket.add(moved)
    there.adopt(moved)
    assert (list(bucket), here.count, moved.owner) == ([], 0, there)
    there.adopt(moved)
    assert moved.owner is there

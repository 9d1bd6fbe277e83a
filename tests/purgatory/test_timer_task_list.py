"""Buckets and their tasks: what Kafka's TimerTaskListTest claims, and the links themselves."""

import threading

import pytest

from purgatory import TaskCounter, TimerTaskList, compiled


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
    """Something happens just before it is taken."""

    def __init__(self, before):
        self._before = before

    def acquire(self):
        self._before()

    def release(self):
        pass


class _HookedGate:
    """Something happens, and the lock is left, when a thread comes to wait at it."""

    def __init__(self, lock, before):
        self._lock = lock
        self._before = before
        self._made = False

    def acquire(self):
        if not self._made:
            self._made = True
        else:
            self._before()
            self._lock.release()
        return True

    def release(self):
        pass


@pytest.fixture
def before_it_is_taken(monkeypatch):
    """Have a function called when a thread is about to take the lock of a counter."""

    def hook(counter, function):
        if compiled:
            lock = counter.lock
            monkeypatch.setattr(threading, "Lock", lambda: _HookedGate(lock, function))
            lock.acquire()
        else:
            counter.lock = _HookedLock(function)

    return hook


def test_a_task_that_moves_to_another_timer_while_it_is_cancelled_is_cancelled_there(
    task, before_it_is_taken
):
    here, there = TaskCounter(), TaskCounter()
    moved, bucket_here, bucket_there = task(0), TimerTaskList(here), TimerTaskList(there)
    bucket_here.add(moved)
    moves, locked_there = [], []
    before_it_is_taken(here, lambda: moves.append(bucket_there.add(moved)))
    if not compiled:
        there.lock = _HookedLock(lambda: locked_there.append(True))
    moved.cancel()
    assert moves == [None]
    assert locked_there == ([] if compiled else [True])
    assert (list(bucket_here), list(bucket_there)) == ([], [])
    assert (here.count, there.count) == (0, 0)

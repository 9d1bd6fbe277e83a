"""The delay queue: buckets come out when they are due, in order, and waiting can be ended."""

import threading

import pytest
from broker_sim_purgatory import SystemClock, VirtualClock
from broker_sim_purgatory._delay_queue import DelayQueue
from broker_sim_purgatory._timer_task_entry import TaskOwner
from broker_sim_purgatory._timer_task_list import NOT_ENQUEUED, TimerTaskList


@pytest.fixture
def bucket():
    owner = TaskOwner()

    def make(expiration_ms, level=1, index=0):
        made = TimerTaskList(owner, level, index)
        made.expiration_ms = expiration_ms
        return made

    return make


def test_a_bucket_comes_out_at_its_expiration(bucket):
    clock = VirtualClock()
    queue = DelayQueue(clock, threading.Lock())
    due = bucket(10)
    queue.offer(due)
    for now_ms, expected in ((9, None), (10, due), (11, None)):
        clock.advance_to(now_ms)
        assert queue.poll(0) is expected


def test_buckets_come_out_by_expiration_then_level_then_index(bucket):
    clock = VirtualClock()
    queue = DelayQueue(clock, threading.Lock())
    ordered = [bucket(5), bucket(9, 1, 3), bucket(9, 1, 4), bucket(9, 2, 1), bucket(12)]
    for each in (ordered[3], ordered[4], ordered[2], ordered[0], ordered[1]):
        queue.offer(each)
    clock.advance_to(12)
    assert [queue.poll_expired() for _ in range(6)] == [*ordered, None]


def test_next_expiration_skips_and_drops_empty_buckets(bucket, task):
    queue = DelayQueue(VirtualClock(), threading.Lock())
    assert queue.next_expiration_ms() is None
    empty, full = bucket(5), bucket(9)
    full.add(task(9))
    queue.offer(empty)
    queue.offer(full)
    assert queue.next_expiration_ms() == 9
    assert len(queue) == 1
    assert empty.expiration_ms == NOT_ENQUEUED  # so its next task enqueues it again


@pytest.mark.threads
def test_poll_waits_for_a_bucket_and_no_longer_than_its_timeout(bucket):
    clock = SystemClock()
    lock = threading.Lock()
    queue = DelayQueue(clock, lock)
    start_ms = clock.now_ms()
    with lock:
        assert queue.poll(20) is None
        assert clock.now_ms() >= start_ms + 20
        due = bucket(clock.now_ms() + 20)
        queue.offer(due)
        assert queue.poll(60_000) is due
        assert clock.now_ms() >= due.expiration_ms


@pytest.mark.threads
def test_an_earlier_bucket_shortens_the_wait(bucket):
    clock = SystemClock()
    lock = threading.Lock()
    queue = DelayQueue(clock, lock)
    later, sooner = bucket(clock.now_ms() + 3_600_000), bucket(clock.now_ms() + 10)
    queue.offer(later)
    polled = []

    def poll():
        with lock:
            polled.append(queue.poll(3_600_000))

    thread = threading.Thread(target=poll)
    thread.start()
    with lock:
        queue.offer(sooner)
    thread.join(30)
    assert polled == [sooner]


@pytest.mark.threads
def test_wakeup_ends_one_wait_the_present_or_the_next():
    clock = SystemClock()
    lock = threading.Lock()
    queue = DelayQueue(clock, lock)
    polled = []

    def poll():
        with lock:
            polled.append(queue.poll(3_600_000))

    thread = threading.Thread(target=poll)
    thread.start()
    with lock:
        queue.wakeup()
    thread.join(30)
    assert polled == [None]
    start_ms = clock.now_ms()
    with lock:
        assert queue.poll(20) is None
    assert clock.now_ms() >= start_ms + 20

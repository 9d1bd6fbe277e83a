"""The purgatory's locks behave as threading's do; in the native build they are its own."""

import gc
import sys
import threading

import pytest

from purgatory import compiled, locks

PATIENCE_S = 60


@pytest.fixture(params=["LeafLock", "ReentrantLock"])
def lock(request):
    return getattr(locks, request.param)()


def in_another_thread(function):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(function()))
    thread.start()
    thread.join(PATIENCE_S)
    return answers[0]


def test_pure_python_takes_the_locks_of_threading():
    assert (locks.LeafLock is threading.Lock) is not compiled
    assert (type(locks.ReentrantLock()) is type(threading.RLock())) is not compiled


def test_another_thread_is_refused_while_it_is_held(lock):
    assert lock.acquire()
    assert in_another_thread(lambda: lock.acquire(False)) is False
    lock.release()
    assert in_another_thread(lambda: lock.acquire(False)) is True


def test_a_leaf_lock_refuses_its_own_holder():
    lock = locks.LeafLock()
    assert lock.acquire(False) is True
    assert lock.acquire(False) is False


def test_a_reentrant_lock_is_free_after_as_many_releases_as_it_was_taken():
    lock = locks.ReentrantLock()
    assert lock.acquire()
    assert lock.acquire()
    lock.release()
    assert in_another_thread(lambda: lock.acquire(False)) is False
    lock.release()
    assert in_another_thread(lambda: lock.acquire(False)) is True


def test_a_reentrant_lock_cannot_be_released_by_who_does_not_hold_it():
    lock = locks.ReentrantLock()
    with pytest.raises(RuntimeError):
        lock.release()
    in_another_thread(lock.acquire)
    with pytest.raises(RuntimeError):
        lock.release()


def test_an_exception_releases_it(lock):
    with pytest.raises(KeyError), lock:
        raise KeyError
    assert in_another_thread(lambda: lock.acquire(False)) is True


def test_it_serves_as_the_lock_of_a_condition():
    lock, seen = locks.LeafLock(), []
    condition = threading.Condition(lock)

    def wait():
        with condition:
            condition.wait_for(lambda: seen, PATIENCE_S)
            return len(seen)

    def announce():
        with condition:
            seen.append(1)
            condition.notify_all()

    waiter = threading.Thread(target=wait)
    waiter.start()
    announce()
    waiter.join(PATIENCE_S)
    assert not waiter.is_alive()


@pytest.mark.threads
def test_no_update_is_lost_and_nobody_waits_for_ever_under_contention(lock):
    threads, rounds, total = 6, 3_000, [0]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def add():
        for number in range(rounds):
            with lock:
                seen = total[0]
                if number % 500 == 0:
                    gc.collect(0)
                total[0] = seen + 1

    workers = [threading.Thread(target=add) for _ in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(PATIENCE_S)
    finally:
        sys.setswitchinterval(before)
    assert not any(worker.is_alive() for worker in workers)
    assert total == [threads * rounds]

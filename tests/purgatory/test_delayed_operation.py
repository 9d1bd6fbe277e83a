"""One operation by itself: who completes it, under which lock, and in which order."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from broker_sim_purgatory import DelayedOperation, DelayedOperationPurgatory


class _WatchedLock:
    """A reentrant lock that knows whether it is held."""

    def __init__(self):
        self._lock = threading.RLock()
        self.depth = 0

    def acquire(self):
        self._lock.acquire()
        self.depth += 1

    def release(self):
        self.depth -= 1
        self._lock.release()


class _Scripted(DelayedOperation):
    """Answers each try from a script and notes what is called, and whether the lock is held."""

    def __init__(self, *answers):
        self.watched_lock = _WatchedLock()
        super().__init__(100, self.watched_lock)
        self.answers = list(answers)
        self.calls = []

    def try_complete(self):
        self.calls.append(("try", self.watched_lock.depth > 0))
        return self.answers.pop(0) and self.force_complete()

    def on_complete(self):
        self.calls.append(("complete", self.watched_lock.depth > 0))

    def on_expiration(self):
        self.calls.append(("expiration", self.watched_lock.depth > 0))


def test_only_the_first_force_complete_wins():
    op = _Scripted()
    assert not op.is_completed()
    assert op.force_complete() is True
    assert op.is_completed()
    assert op.force_complete() is False
    assert op.calls == [("complete", True)]


def test_force_complete_leaves_the_timer_before_on_complete(timer):
    sizes = []

    class Operation(_Scripted):
        def on_complete(self):
            sizes.append(timer.size())

    op = Operation()
    timer.add(op)
    assert timer.size() == 1
    op.force_complete()
    assert sizes == [0]


def test_lock_that_is_not_reentrant_is_refused(operation):
    with pytest.raises(ValueError, match=r"^lock is not reentrant: pass a threading.RLock"):
        operation(lock=threading.Lock())


@pytest.mark.threads
def test_completed_operation_is_not_waited_for():
    op = _Scripted()
    op.force_complete()
    with ThreadPoolExecutor(1) as other_thread:
        op.watched_lock.acquire()
        try:
            assert other_thread.submit(op.force_complete).result(timeout=30) is False
        finally:
            op.watched_lock.release()


def test_expiry_completes_and_then_reports_the_expiration():
    op = _Scripted()
    op.run()
    assert op.calls == [("complete", True), ("expiration", False)]


def test_expiry_of_a_completed_operation_does_nothing():
    op = _Scripted()
    op.force_complete()
    op.run()
    assert op.calls == [("complete", True)]


def test_an_operation_has_its_own_reentrant_lock_unless_one_thread(operation):
    one, other = operation(), operation()
    assert isinstance(one.lock, type(threading.RLock()))
    assert one.lock is not other.lock
    shared = threading.RLock()
    assert operation(lock=shared).lock is shared
    assert DelayedOperation(100, one_thread=True).lock is None


def test_a_one_thread_operation_is_tried_once_before_it_waits(timer):
    tries = []

    class Operation(DelayedOperation):
        def try_complete(self):
            tries.append(self)
            return False

    op = Operation(100, one_thread=True)
    purgatory = DelayedOperationPurgatory("test", timer, reaper_enabled=False)
    assert purgatory.try_complete_else_watch(op, ("a",)) is False
    assert op.safe_try_complete_or_else(lambda: None) is False
    assert tries == [op, op]
    assert purgatory.check_and_complete("a") == 0
    assert tries == [op, op, op]


def test_safe_try_complete_holds_the_lock():
    op = _Scripted(False, True)
    assert op.safe_try_complete() is False
    assert op.safe_try_complete() is True
    assert op.calls == [("try", True), ("try", True), ("complete", True)]
    assert op.watched_lock.depth == 0


@pytest.mark.parametrize(
    ("answers", "result", "calls"),
    [
        ((True,), True, [("try", True), ("complete", True)]),
        ((False, True), True, [("try", True), ("else", True), ("try", True), ("complete", True)]),
        ((False, False), False, [("try", True), ("else", True), ("try", True)]),
    ],
)
def test_safe_try_complete_or_else_tries_again_after_the_action(answers, result, calls):
    op = _Scripted(*answers)

    def action():
        op.calls.append(("else", op.watched_lock.depth > 0))

    assert op.safe_try_complete_or_else(action) is result
    assert op.calls == calls


def test_the_lock_is_released_when_a_try_fails():
    op = _Scripted()
    with pytest.raises(IndexError):
        op.safe_try_complete()
    assert op.watched_lock.depth == 0


def test_an_operation_whose_on_complete_fails_is_completed_all_the_same():
    class Broken(_Scripted):
        def on_complete(self):
            raise KeyError("broken")

    op = Broken()
    with pytest.raises(KeyError):
        op.force_complete()
    assert op.is_completed()
    assert op.force_complete() is False


@pytest.mark.parametrize("method", ["try_complete", "on_complete", "on_expiration"])
def test_an_abstract_method_raises_not_implemented_error(method):
    with pytest.raises(NotImplementedError):
        getattr(DelayedOperation, method)(_Scripted())


@pytest.mark.threads
def test_one_of_many_threads_completes():
    for _ in range(50):
        op = _Scripted()
        barrier = threading.Barrier(8)
        results = []

        def complete(op=op, barrier=barrier, results=results):
            barrier.wait(30)
            results.append(op.force_complete())

        threads = [threading.Thread(target=complete) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(results) == [False] * 7 + [True]
        assert op.calls == [("complete", True)]

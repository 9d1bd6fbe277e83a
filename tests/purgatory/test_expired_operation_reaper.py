"""The reaper thread: what Kafka's SystemTimerReaperTest claims, its end, and its patience."""

import logging
import threading
import time

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, PendingOperation, SystemTimer
from broker_sim_purgatory import _expired_operation_reaper as reaper_module
from broker_sim_purgatory._expired_operation_reaper import ExpiredOperationReaper

pytestmark = pytest.mark.threads

PATIENCE_S = 60
PURGE_INTERVAL = 1_000


@pytest.fixture
def patient(monkeypatch):
    """Let a round wait so long that only a wake-up can end it within a test."""
    monkeypatch.setattr(reaper_module, "WORK_TIMEOUT_MS", 3_600_000)


def test_reaper_expires_operations_on_the_executors_thread(operation):
    done = threading.Semaphore(0)
    threads = set()

    class Operation(operation):
        def on_expiration(self):
            threads.add(threading.current_thread().name)
            done.release()

    purgatory = DelayedOperationPurgatory("produce", SystemTimer("produce"), broker_id=7)
    names = {thread.name for thread in threading.enumerate()}
    ops = [Operation(delay_ms) for delay_ms in (10, 20, 30)]
    for op in ops:
        purgatory.try_complete_else_watch(op, ("a",))
    for _ in ops:
        assert done.acquire(timeout=30)
    purgatory.shutdown()
    assert "ExpirationReaper-7-produce" in names
    assert threads == {"executor-produce"}
    assert [op.is_completed() for op in ops] == [True] * 3
    assert purgatory.num_delayed() == 0


def test_reaper_purges_what_has_completed_though_nothing_is_due():
    purgatory = DelayedOperationPurgatory("produce", SystemTimer("produce"), purge_interval=PURGE_INTERVAL)
    for _ in range(20_000):
        op = PendingOperation(3_600_000)
        purgatory.try_complete_else_watch(op, ("a", "b"))
        op.force_complete()
    end_s = time.monotonic() + PATIENCE_S
    while purgatory.watched() > 2 * PURGE_INTERVAL:
        assert time.monotonic() < end_s
        time.sleep(0)
    purgatory.shutdown()


def test_shutdown_wakes_the_reaper_at_once_and_waits_for_its_end(patient):
    name = "ExpirationReaper-0-patient"
    purgatory = DelayedOperationPurgatory("patient", SystemTimer("patient"))
    assert name in {thread.name for thread in threading.enumerate()}
    purgatory.shutdown()
    assert name not in {thread.name for thread in threading.enumerate()}
    purgatory.shutdown()


def test_shutdown_ends_a_reaper_that_waits_for_an_operation(patient, operation):
    purgatory = DelayedOperationPurgatory("patient", SystemTimer("patient"))
    op = operation(3_000_000)
    purgatory.try_complete_else_watch(op, ("a",))
    purgatory.shutdown()
    assert not op.is_completed()
    assert (purgatory.num_delayed(), purgatory.watched()) == (0, 0)


def test_an_operation_may_shut_its_purgatory_down_on_the_reapers_thread(operation):
    done = threading.Event()
    purgatory = DelayedOperationPurgatory("inline", SystemTimer("inline", None, InlineExecutor()))

    class Operation(operation):
        def on_complete(self):
            purgatory.shutdown()
            done.set()

    purgatory.try_complete_else_watch(Operation(5), ("a",))
    assert done.wait(30)
    assert purgatory.num_delayed() == 0


@pytest.mark.parametrize("method", ["on_complete", "on_expiration"])
@pytest.mark.parametrize("executor", [None, InlineExecutor()])
def test_a_failing_operation_is_logged_and_the_next_one_expires(operation, logged, method, executor):
    done = threading.Event()

    class Broken(operation):
        pass

    def fail(self):
        raise KeyError("broken")

    setattr(Broken, method, fail)

    class Operation(operation):
        def on_expiration(self):
            done.set()

    purgatory = DelayedOperationPurgatory("test", SystemTimer("test", None, executor))
    purgatory.try_complete_else_watch(Broken(5), ("a",))
    purgatory.try_complete_else_watch(Operation(20), ("a",))
    assert done.wait(30)
    purgatory.shutdown()
    (record,) = logged()
    assert record.levelno == logging.ERROR
    assert "KeyError" in record.exc_text


def test_reaper_survives_work_that_fails(logged):
    rounds = threading.Semaphore(0)

    def work(timeout_ms):
        assert timeout_ms == 200
        rounds.release()
        raise KeyError("broken")

    reaper = ExpiredOperationReaper("reaper", work, lambda: None)
    reaper.start()
    for _ in range(3):
        assert rounds.acquire(timeout=30)
    reaper.shutdown()
    assert len(logged()) >= 2

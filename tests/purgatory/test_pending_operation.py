"""The operation that needs no class: when its callback is called, and with what."""

import threading

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, PendingOperation, SystemTimer, VirtualClock


@pytest.fixture
def purgatory(timer):
    purgatory = DelayedOperationPurgatory("test", timer, reaper_enabled=False)
    yield purgatory
    purgatory.shutdown()


def test_it_is_called_back_once_it_is_ready_and_announced(purgatory):
    answers = []
    operation = PendingOperation(1_000, answers.append)
    assert not purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert purgatory.check_and_complete("a") == 0
    operation.ready = True
    assert answers == []
    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("a") == 0
    assert (answers, purgatory.num_delayed()) == ([True], 0)


def test_an_operation_that_is_ready_is_not_parked(purgatory):
    answers = []
    operation = PendingOperation(1_000, answers.append)
    operation.ready = True
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert (answers, purgatory.num_delayed(), purgatory.watched()) == ([True], 0, 0)


def test_its_callback_is_told_that_the_time_was_over(purgatory, step):
    answers = []
    purgatory.try_complete_else_watch(PendingOperation(50, answers.append), ["a"])
    step(49)
    assert answers == []
    step(50)
    assert answers == [False]
    assert purgatory.check_and_complete("a") == 0


def test_its_callback_is_told_that_it_was_forced():
    answers = []
    operation = PendingOperation(50, answers.append)
    assert operation.force_complete()
    assert not operation.force_complete()
    assert answers == [False]


def test_the_callback_is_optional(purgatory):
    operation = PendingOperation(50)
    purgatory.try_complete_else_watch(operation, ["a"])
    operation.ready = True
    assert purgatory.check_and_complete("a") == 1
    assert operation.is_completed()


def test_an_event_between_the_first_try_and_the_watching_is_not_lost():
    class Clock(VirtualClock):
        """Read between the first try and the watching."""

        def deadline_ms(self, delay_ms):
            operation.ready = True
            assert purgatory.check_and_complete("a") == 0
            return super().deadline_ms(delay_ms)

    timer = SystemTimer("test", Clock(), InlineExecutor())
    purgatory = DelayedOperationPurgatory("test", timer, reaper_enabled=False)
    answers = []
    operation = PendingOperation(50, answers.append)
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert (answers, purgatory.num_delayed(), purgatory.watched()) == ([True], 0, 0)


@pytest.mark.threads
def test_of_many_threads_that_announce_and_force_it_one_completes_it(purgatory):
    answers, winners = [], []

    def announce(start):
        start.wait()
        winners.extend(purgatory.check_and_complete("a") for _ in range(200))

    def force(start):
        start.wait()
        winners.extend(int(operation.force_complete()) for operation in operations)

    operations = [PendingOperation(50_000, answers.append) for _ in range(500)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a"])
        operation.ready = True
    start = threading.Barrier(4)
    threads = [threading.Thread(target=target, args=(start,)) for target in (announce, force) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(winners) == 500
    assert answers == [True] * 500
    assert purgatory.check_and_complete("a") == 0
    assert (purgatory.num_delayed(), purgatory.watched()) == (0, 0)


def test_an_exception_of_the_callback_reaches_the_announcer(purgatory):
    def fail(_):
        raise RuntimeError("cannot answer")

    operation = PendingOperation(50, fail)
    purgatory.try_complete_else_watch(operation, ["a"])
    operation.ready = True
    with pytest.raises(RuntimeError, match="cannot answer"):
        purgatory.check_and_complete("a")
    assert operation.is_completed()


def test_pending_operation_can_be_subclassed(purgatory):
    class Named(PendingOperation):
        def __init__(self, name):
            super().__init__(50)
            self.name = name

        def on_complete(self):
            done.append((self.name, self.ready))

    done = []
    operation = Named("first")
    purgatory.try_complete_else_watch(operation, ["a"])
    operation.ready = True
    purgatory.check_and_complete("a")
    assert done == [("first", True)]

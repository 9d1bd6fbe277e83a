"""What an observer is told: every operation from its try to exactly one end."""

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, SystemTimer


class _Observer:
    """Writes down what it is told."""

    def __init__(self):
        self.events = []

    def tried(self, operation, keys):
        self.events.append(("tried", operation.operation_id, tuple(keys)))

    def parked(self, operation, keys):
        self.events.append(("parked", operation.operation_id, tuple(keys)))

    def completed(self, operation, by):
        self.events.append(("completed", operation.operation_id, by))

    def expired(self, operation, lateness_ms):
        self.events.append(("expired", operation.operation_id, lateness_ms))

    def cancelled(self, operation):
        self.events.append(("cancelled", operation.operation_id))


@pytest.fixture
def observer():
    return _Observer()


@pytest.fixture
def purgatory(timer, observer):
    return DelayedOperationPurgatory("test", timer, reaper_enabled=False, observer=observer)


@pytest.fixture
def park(purgatory, observer, operation):
    """Park an operation and forget the events of that."""

    def make(keys=("a",), delay_ms=100_000):
        op = operation(delay_ms)
        assert purgatory.try_complete_else_watch(op, keys) is False
        observer.events.clear()
        return op

    return make


def test_completed_at_the_first_try(purgatory, observer, operation):
    op = operation()
    op.completable = True
    purgatory.try_complete_else_watch(op, ("a", "b"))
    assert observer.events == [("tried", 1, ("a", "b")), ("completed", 1, "immediate")]


def test_completed_at_the_second_try(purgatory, observer, operation):
    class Second(operation):
        def try_complete(self):
            self.completable = self.tries == 1
            return super().try_complete()

    assert purgatory.try_complete_else_watch(Second(), ("a",)) is True
    assert observer.events == [("tried", 1, ("a",)), ("completed", 1, "immediate")]


def test_parked_and_completed_by_a_key(purgatory, observer, operation):
    op = operation()
    purgatory.try_complete_else_watch(op, ("a", ("t", 0)))
    op.completable = True
    purgatory.check_and_complete(("t", 0))
    purgatory.check_and_complete("a")
    assert observer.events == [
        ("tried", 1, ("a", ("t", 0))),
        ("parked", 1, ("a", ("t", 0))),
        ("completed", 1, "key:('t', 0)"),
    ]


def test_completion_from_outside_is_reported_once(park, observer):
    op = park()
    op.force_complete()
    op.force_complete()
    assert observer.events == [("completed", 1, "other")]


@pytest.mark.parametrize("late_ms", [0, 1, 250])
def test_expired_with_its_lateness(park, purgatory, observer, clock, late_ms):
    park(delay_ms=30)
    clock.advance_to(30 + late_ms)
    purgatory.advance_clock(0)
    assert observer.events == [("expired", 1, late_ms)]


def test_an_operation_without_delay_expires_while_it_is_parked(purgatory, observer, operation):
    purgatory.try_complete_else_watch(operation(0), ("a",))
    assert observer.events == [("tried", 1, ("a",)), ("parked", 1, ("a",)), ("expired", 1, 0)]


def test_cancelled_by_key_is_the_end_even_if_another_key_completes_it(park, purgatory, observer):
    op = park(keys=("a", "b"))
    purgatory.cancel_for_key("a")
    assert observer.events == [("cancelled", 1)]
    purgatory.cancel_for_key("b")
    op.force_complete()
    assert op.completions == 1
    assert observer.events == [("cancelled", 1)]


def test_cancelling_a_key_reports_nothing_for_completed_operations(park, purgatory, observer):
    park(keys=("a", "b")).force_complete()
    purgatory.cancel_for_key("b")
    assert observer.events == [("completed", 1, "other")]


def test_shutdown_cancels_what_is_parked(park, purgatory, observer):
    ops = [park(), park(keys=("b",), delay_ms=5)]
    purgatory.shutdown()
    purgatory.shutdown()
    assert observer.events == [("cancelled", 1), ("cancelled", 2)]
    assert not any(op.is_completed() for op in ops)


def test_shutdown_may_complete_what_is_parked(park, purgatory, observer):
    ops = [park(), park(keys=("b",), delay_ms=5)]
    purgatory.shutdown(complete_parked=True)
    assert sorted(observer.events) == [("completed", 1, "shutdown"), ("completed", 2, "shutdown")]
    assert [op.completions for op in ops] == [1, 1]


def test_parking_after_shutdown_raises_and_ends_the_operation(purgatory, observer, operation):
    purgatory.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        purgatory.try_complete_else_watch(operation(), ("a",))
    assert observer.events == [("tried", 1, ("a",)), ("cancelled", 1)]


def test_an_operation_completed_before_it_is_tried_is_not_reported(purgatory, observer, operation):
    op = operation()
    op.force_complete()
    assert purgatory.try_complete_else_watch(op, ("a",)) is False
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)
    assert observer.events == []


def test_a_try_that_fails_ends_the_operation(purgatory, observer, operation):
    class Broken(operation):
        def try_complete(self):
            raise KeyError("broken")

    with pytest.raises(KeyError):
        purgatory.try_complete_else_watch(Broken(), ("a",))
    assert observer.events == [("tried", 1, ("a",)), ("cancelled", 1)]


def test_an_operation_whose_on_complete_fails_is_reported_as_completed(park, purgatory, observer, operation):
    class Broken(operation):
        def on_complete(self):
            raise KeyError("broken")

    op = Broken()
    purgatory.try_complete_else_watch(op, ("a",))
    op.completable = True
    with pytest.raises(KeyError):
        purgatory.check_and_complete("a")
    assert observer.events[-1] == ("completed", 1, "key:a")


def test_each_operation_of_a_chain_is_reported_with_its_own_cause(park, purgatory, observer, operation):
    """The first operation's completion announces a second key and completes a third itself."""
    second, third = park(keys=("b",)), park(keys=("c",))

    class First(operation):
        def on_complete(self):
            second.completable = True
            purgatory.check_and_complete("b")
            third.force_complete()

    first = First()
    purgatory.try_complete_else_watch(first, ("a",))
    observer.events.clear()
    first.completable = True
    purgatory.check_and_complete("a")
    assert observer.events == [("completed", 1, "key:b"), ("completed", 2, "other"), ("completed", 3, "key:a")]


def test_events_come_after_on_complete_and_before_on_expiration(clock, timer, operation):
    order = []

    class Observer(_Observer):
        def expired(self, operation, lateness_ms):
            order.append("expired")

    class Operation(operation):
        def on_complete(self):
            order.append("on_complete")

        def on_expiration(self):
            order.append("on_expiration")

    purgatory = DelayedOperationPurgatory("test", timer, reaper_enabled=False, observer=Observer())
    purgatory.try_complete_else_watch(Operation(5), ("a",))
    clock.advance(5)
    purgatory.advance_clock(0)
    assert order == ["on_complete", "expired", "on_expiration"]


def test_an_operation_knows_when_it_was_created(park, clock):
    clock.advance(40)
    op = park(delay_ms=100)
    clock.advance(7)
    assert op.created_ms == 40
    op.force_complete()
    assert op.created_ms == 40


def test_ids_count_per_purgatory_and_unobserved_operations_get_theirs_when_listed(purgatory, park, clock, operation):
    assert [park().operation_id for _ in range(3)] == [1, 2, 3]
    timer = SystemTimer("plain", clock, InlineExecutor())
    plain = DelayedOperationPurgatory("plain", timer, reaper_enabled=False)
    op = operation()
    plain.try_complete_else_watch(op, ("a",))
    assert op.operation_id == 0
    assert [each.operation_id for each in plain.parked()] == [1]
    assert op.operation_id == 1
    assert [each.operation_id for each in plain.parked()] == [1]


def test_an_observer_may_read_figures(timer, operation):
    figures = []

    class Observer(_Observer):
        def parked(self, operation, keys):
            figures.append((purgatory.watched(), purgatory.num_delayed()))

        def completed(self, operation, by):
            figures.append((purgatory.statistics().watched, len(purgatory.parked())))

    purgatory = DelayedOperationPurgatory("test", timer, reaper_enabled=False, observer=Observer())
    op = operation()
    purgatory.try_complete_else_watch(op, ("a", "b"))
    op.completable = True
    purgatory.check_and_complete("a")
    assert figures == [(2, 1), (2, 0)]

"""The purgatory: what Kafka's DelayedOperationTest claims, and the rules around it."""

import subprocess
import sys

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, ParkedOperation, SystemTimer, VirtualClock


class _Observer:
    """Is told and does nothing."""

    def tried(self, operation, keys):
        pass

    def parked(self, operation, keys):
        pass

    def completed(self, operation, by):
        pass

    def expired(self, operation, lateness_ms):
        pass

    def cancelled(self, operation):
        pass


@pytest.fixture
def purgatory(timer):
    return DelayedOperationPurgatory("test", timer, purge_interval=10, reaper_enabled=False)


def test_operation_whose_condition_holds_completes_at_once_and_is_not_watched(purgatory, operation):
    op = operation()
    op.completable = True
    assert purgatory.try_complete_else_watch(op, ("a",)) is True
    assert op.completions == 1
    assert purgatory.watched() == 0
    assert purgatory.num_delayed() == 0


def test_event_completes_the_operations_of_its_key_once(purgatory, operation):
    first, second = operation(), operation()
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.try_complete_else_watch(first, ("a",)) is False
    assert purgatory.try_complete_else_watch(second, ("b",)) is False
    assert purgatory.check_and_complete("a") == 0
    first.completable = second.completable = True
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.check_and_complete("b") == 1
    assert (first.completions, second.completions) == (1, 1)
    assert purgatory.num_delayed() == 0


@pytest.mark.parametrize("delay_ms", [1, 19, 20, 21, 399, 400, 500, 30_000])
def test_operation_expires_at_its_deadline_and_not_before(purgatory, clock, operation, delay_ms):
    op = operation(delay_ms)
    purgatory.try_complete_else_watch(op, ("a",))
    clock.advance_to(delay_ms - 1)
    purgatory.advance_clock(0)
    assert not op.is_completed()
    clock.advance_to(delay_ms)
    purgatory.advance_clock(0)
    assert (op.completions, op.expirations) == (1, 1)
    clock.advance_to(delay_ms + 1)
    purgatory.advance_clock(0)
    assert (op.completions, op.expirations) == (1, 1)


def test_postponed_operation_stays_watched_and_expires_later(purgatory, clock, operation):
    late, completed = operation(1_000), operation(1_000)
    for op in (late, completed):
        purgatory.try_complete_else_watch(op, ("a", "b"))
    clock.advance(999)
    purgatory.advance_clock(0)
    tries = late.tries
    assert purgatory.postpone(late) is purgatory.postpone(completed) is True
    assert late.tries == tries
    assert (purgatory.watched(), purgatory.num_delayed()) == (4, 2)
    completed.completable = True
    assert purgatory.check_and_complete("b") == 1
    for by_ms, expirations in ((999, 0), (1, 1), (1_000, 1)):
        clock.advance(by_ms)
        while purgatory.advance_clock(0):
            pass
        assert late.expirations == expirations
    assert purgatory.postpone(late) is purgatory.postpone(completed) is False
    assert (late.completions, completed.completions, purgatory.num_delayed()) == (1, 1, 0)


def test_postponed_operation_can_be_given_another_delay(purgatory, clock, operation):
    op = operation(1_000)
    purgatory.try_complete_else_watch(op, ("a",))
    clock.advance(400)
    assert purgatory.postpone(op, 300) is True
    (parked,) = purgatory.parked()
    assert (op.delay_ms, parked.time_left_ms) == (300, 300)
    for by_ms, expirations in ((299, 0), (1, 1)):
        clock.advance(by_ms)
        while purgatory.advance_clock(0):
            pass
        assert op.expirations == expirations


def test_key_is_watched_while_an_operation_may_wait_under_it(purgatory, operation):
    assert purgatory.is_watched("a") is False
    op = operation(1_000)
    purgatory.try_complete_else_watch(op, ("a", "b"))
    assert (purgatory.is_watched("a"), purgatory.is_watched("c")) == (True, False)
    op.completable = True
    purgatory.check_and_complete("a")
    assert (purgatory.is_watched("a"), purgatory.is_watched("b")) == (False, True)


def test_observed_purgatory_postpones_nothing(timer, operation):
    purgatory = DelayedOperationPurgatory("test", timer, reaper_enabled=False, observer=_Observer())
    op = operation(1_000)
    purgatory.try_complete_else_watch(op, ("a",))
    assert purgatory.postpone(op) is False
    assert purgatory.postpone(op, 5) is False
    assert op.delay_ms == 1_000
    assert purgatory.num_delayed() == 1


@pytest.mark.parametrize("keys", [(), []])
def test_parking_without_keys_raises_and_tries_nothing(purgatory, operation, keys):
    op = operation()
    with pytest.raises(ValueError, match="SwitchedOperation has no keys: pass at least"):
        purgatory.try_complete_else_watch(op, keys)
    assert (op.tries, purgatory.num_delayed()) == (0, 0)


def test_parking_without_keys_raises_where_asserts_are_left_out():
    program = """
from broker_sim_purgatory import DelayedOperationPurgatory, PendingOperation, VirtualTimer
try:
    DelayedOperationPurgatory("test", VirtualTimer()).try_complete_else_watch(PendingOperation(1), [])
except ValueError:
    assert False, "asserts are left out"
    print("raised")
"""
    command = [sys.executable, "-O", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "raised\n"


def test_an_operation_whose_parking_fails_is_left_nowhere(purgatory, operation):
    class Broken(operation):
        def try_complete(self):
            if self.tries == 1:
                raise KeyError("broken")
            return super().try_complete()

    with pytest.raises(KeyError):
        purgatory.try_complete_else_watch(Broken(), ("a", "b"))
    with pytest.raises(TypeError, match="unhashable"):
        purgatory.try_complete_else_watch(operation(), ("a", []))
    statistics = purgatory.statistics()
    assert (statistics.watched, statistics.watched_keys, statistics.num_delayed) == (0, 0, 0)


def test_cancel_for_key_returns_uncompleted_operations_and_empties_the_timer(purgatory, operation):
    ops = [operation(), operation(), operation()]
    for op, key in zip(ops, ("key", "key", "key2"), strict=True):
        purgatory.try_complete_else_watch(op, (key,))
    assert purgatory.cancel_for_key("key") == ops[:2]
    assert not any(op.is_completed() for op in ops)
    assert purgatory.num_delayed() == 1
    assert purgatory.watched() == 1


def test_cancel_for_unknown_key_returns_nothing(purgatory):
    assert purgatory.cancel_for_key("nobody") == []


def test_parked_operations_show_keys_age_time_left_and_place_in_the_wheel(purgatory, clock, operation):
    purgatory.try_complete_else_watch(operation(450), ("a", "b"))
    clock.advance(100)
    purgatory.try_complete_else_watch(operation(7), ("c",))
    late, early = purgatory.parked()[1], purgatory.parked()[0]
    assert early.keys == ("c",)
    assert (early.age_ms, early.time_left_ms) == (0, 7)
    assert late == ParkedOperation(
        operation_id=late.operation_id,
        operation="SwitchedOperation",
        keys=("a", "b"),
        delay_ms=450,
        age_ms=100,
        time_left_ms=350,
        wheel_level=3,
        wheel_bucket=1,
    )


def test_virtual_clock_with_a_reaper_is_refused():
    with pytest.raises(ValueError, match="reaper_enabled"):
        DelayedOperationPurgatory("test", SystemTimer("test", VirtualClock()))


def test_an_operation_completed_just_before_it_is_parked_is_left_nowhere(operation):
    op = operation()

    class Clock(VirtualClock):
        def deadline_ms(self, delay_ms):
            op.force_complete()
            return super().deadline_ms(delay_ms)

    purgatory = DelayedOperationPurgatory("test", SystemTimer("test", Clock(), InlineExecutor()), reaper_enabled=False)
    assert purgatory.try_complete_else_watch(op, ("a",)) is False
    assert op.completions == 1
    assert purgatory.num_delayed() == 0


def test_the_lock_is_held_from_the_first_try_to_the_last(purgatory, operation):
    held = []

    class Lock:
        depth = 0

        def acquire(self):
            self.depth += 1
            held.append("taken")

        def release(self):
            self.depth -= 1

    class Operation(operation):
        def try_complete(self):
            held.append(self.lock.depth)
            return super().try_complete()

    assert purgatory.try_complete_else_watch(Operation(lock=Lock()), ("a",)) is False
    assert held == ["taken", 1, 1]


def test_completed_operations_leave_the_timer_at_once_and_watch_lists_when_checked(purgatory, operation):
    first, second, third = operation(), operation(), operation()
    purgatory.try_complete_else_watch(first, ("1",))
    purgatory.try_complete_else_watch(second, ("1", "2"))
    purgatory.try_complete_else_watch(third, ("1", "2", "3"))
    assert (purgatory.num_delayed(), purgatory.watched()) == (3, 6)
    second.force_complete()
    third.force_complete()
    assert (purgatory.num_delayed(), purgatory.watched()) == (1, 6)
    for key, watched in (("1", 4), ("2", 2), ("3", 1)):
        assert purgatory.check_and_complete(key) == 0
        assert purgatory.watched() == watched


def test_completing_an_operation_may_park_another_under_the_same_key(purgatory, operation):
    """Kafka's first join of a group does so: it waits again while members keep coming."""
    successor = operation()

    class Operation(operation):
        def on_complete(self):
            purgatory.try_complete_else_watch(successor, ("group",))

    op = Operation()
    purgatory.try_complete_else_watch(op, ("group",))
    op.completable = True
    assert purgatory.check_and_complete("group") == 1
    assert (purgatory.watched(), purgatory.num_delayed()) == (1, 1)
    successor.completable = True
    assert purgatory.check_and_complete("group") == 1
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)


def test_keys_of_the_same_hash_are_kept_apart(purgatory, operation):
    class Key:
        def __hash__(self):
            return 7

    keys = [Key(), Key()]
    here, there = operation(), operation()
    purgatory.try_complete_else_watch(here, keys[:1])
    purgatory.try_complete_else_watch(there, keys[1:])
    here.completable = there.completable = True
    assert purgatory.check_and_complete(keys[1]) == 1
    assert not here.is_completed()


@pytest.mark.parametrize("observer", [None, _Observer()])
def test_parking_after_shutdown_raises_and_watches_nothing(timer, operation, observer):
    purgatory = DelayedOperationPurgatory("test", timer, reaper_enabled=False, observer=observer)
    purgatory.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        purgatory.try_complete_else_watch(operation(), ("a", "b"))
    assert purgatory.watch_lists() == []
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)


def test_an_operation_that_completes_at_its_first_try_needs_no_open_purgatory(purgatory, operation):
    op = operation()
    op.completable = True
    purgatory.shutdown()
    assert purgatory.try_complete_else_watch(op, ("a",)) is True
    assert op.completions == 1


def test_operation_parked_during_shutdown_is_refused(purgatory, operation):
    refused = []

    class Operation(operation):
        def on_complete(self):
            with pytest.raises(RuntimeError, match="shut down"):
                purgatory.try_complete_else_watch(operation(), ("a",))
            refused.append(self)

    op = Operation()
    purgatory.try_complete_else_watch(op, ("a",))
    purgatory.shutdown(complete_parked=True)
    assert refused == [op]
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)


def test_on_complete_runs_without_the_purgatorys_lock(purgatory, timer, clock, operation):
    held = []

    class Operation(operation):
        def on_complete(self):
            held.append(timer.owner.lock.locked())
            super().on_complete()

        def on_expiration(self):
            held.append(timer.owner.lock.locked())

    ops = [Operation(10) for _ in range(4)]
    for op in ops[1:]:
        purgatory.try_complete_else_watch(op, ("a",))
    ops[0].completable = ops[1].completable = True
    assert purgatory.try_complete_else_watch(ops[0], ("a",)) is True
    assert purgatory.check_and_complete("a") == 1
    assert ops[2].force_complete() is True
    clock.advance(10)
    purgatory.advance_clock(0)
    assert held == [False] * 5
    assert [op.completions for op in ops] == [1] * 4


def test_shutdown_drops_what_is_parked_and_refuses_what_comes(purgatory, operation):
    op = operation()
    purgatory.try_complete_else_watch(op, ("a",))
    purgatory.shutdown()
    purgatory.shutdown()
    assert not op.is_completed()
    assert (purgatory.num_delayed(), purgatory.watched(), purgatory.parked()) == (0, 0, [])
    assert purgatory.check_and_complete("a") == 0
    with pytest.raises(RuntimeError, match="shut down"):
        purgatory.try_complete_else_watch(operation(), ("a",))

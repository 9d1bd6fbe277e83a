"""Operations: whatever threads do at the same time, each ends once and no event is lost."""

from itertools import combinations

import pytest
from broker_sim_purgatory import PendingOperation, compiled

pure = pytest.mark.skipif(compiled, reason="compiled code reads fields directly")

LOCKS = ["own", "none"]
SHUTDOWNS = {"shutdown", "shutdown_completing"}
VERBS = ["announce", "announce_b", "force", "expire", "cancel", "purge", *sorted(SHUTDOWNS)]
COMPLETING = {"announce", "announce_b", "force", "expire"}


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("verb", VERBS)
def test_parking_while_anything_else_happens_loses_no_event(explore, world, verb, lock):
    def scenario(explorer):
        here = world(explorer, lock)

        def check():
            if verb in {"announce", "announce_b", "force"}:
                assert here.operation.completions == 1
            if verb in SHUTDOWNS:
                assert here.timer.size() == here.purgatory.watched() == 0
                return
            here.ends()

        return here.park, getattr(here, verb), check

    explore(scenario, more_than=10)


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize(("one", "other"), list(combinations(VERBS, 2)))
def test_two_things_at_once_end_a_parked_operation_at_most_once(explore, world, one, other, lock):
    def scenario(explorer):
        here = world(explorer, lock)
        here.park()

        def check():
            if {one, other} <= COMPLETING:
                assert here.operation.completions == 1
            if {one, other} & SHUTDOWNS:
                assert here.timer.size() == here.purgatory.watched() == 0
                assert here.operation.completions <= 1
                return
            here.ends()

        return getattr(here, one), getattr(here, other), check

    explore(scenario, more_than=5)


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("verb", [*VERBS, "check"])
def test_parking_an_event_and_a_third_thread_lose_no_event(explore, world, verb, lock):
    """With `check`, the last wake-up: another attempt is under way when the condition is met."""

    def scenario(explorer):
        here = world(explorer, lock)

        def check():
            if verb in SHUTDOWNS:
                assert here.timer.size() == here.purgatory.watched() == 0
                assert here.operation.completions <= 1
                return
            if verb != "cancel":
                assert here.operation.completions == 1
            here.ends()

        return here.park, here.announce, getattr(here, verb), check

    explore(scenario, more_than=100, preemptions=2)


@pure
@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("verb", VERBS)
def test_parking_loses_no_event_with_switches_at_fields_read_without_a_lock(explore, world, verb, lock):
    def scenario(explorer):
        here = world(explorer, lock, fields=True)

        def check():
            if verb in {"announce", "announce_b", "force"}:
                assert here.operation.completions == 1
            if verb in SHUTDOWNS:
                assert here.timer.size() == here.purgatory.watched() == 0
                return
            here.ends()

        return here.park, getattr(here, verb), check

    explore(scenario, more_than=100, preemptions=2)


@pure
@pytest.mark.parametrize(("one", "other"), [("announce", "force"), ("force", "expire")])
def test_operations_complete_once_with_switches_at_fields_read_without_a_lock(explore, world, one, other):
    def scenario(explorer):
        here = world(explorer, fields=True)
        here.park()

        def check():
            assert here.operation.completions == 1
            here.ends()

        return getattr(here, one), getattr(here, other), check

    explore(scenario, more_than=100, preemptions=2)


@pytest.mark.parametrize("verb", VERBS)
def test_an_observer_gets_exactly_one_end_of_each_operation(explore, world, verb):
    def scenario(explorer):
        here = world(explorer, observed=True)

        def check():
            if verb in SHUTDOWNS:
                assert len(here.observer.ends) == here.observer.tries
                return
            here.ends()

        return here.park, getattr(here, verb), check

    explore(scenario, more_than=50, preemptions=3)


def test_operations_that_share_a_lock_end_once_each(explore, world):
    def scenario(explorer):
        here = world(explorer, explorer.reentrant_lock())
        other = here.new_operation()
        here.park(other)
        here.park()
        other.ready = True

        def check():
            assert (here.operation.completions, other.completions) == (1, 1)
            here.ends()

        return here.announce, here.expire, check

    explore(scenario, more_than=50, preemptions=3)


def test_a_purge_removes_nothing_that_waits(explore, world):
    def scenario(explorer):
        here = world(explorer, purge_interval=0)
        gone = here.new_operation()
        here.park(gone)
        gone.force_complete()

        def check():
            assert here.timer.size() == 1
            assert gone not in [op for _, ops in here.purgatory.watch_lists() for op in ops]
            here.ends()

        return here.park, here.purge, check

    explore(scenario, more_than=50)


def test_an_operation_parked_while_its_keys_list_empties_gets_the_next_event(explore, world):
    def scenario(explorer):
        here = world(explorer)
        last = here.new_operation()
        here.park(last)
        last.ready = True

        def check():
            assert last.completions == 1
            here.ends()

        return here.park, here.check, check

    explore(scenario, more_than=50)


def test_a_pending_operation_without_a_lock_is_called_back_once(explore, world):
    def scenario(explorer):
        here = world(explorer)
        answers = []
        here.operation = PendingOperation(10, answers.append)

        def announce():
            here.operation.ready = True
            here.purgatory.check_and_complete("b")

        def check():
            assert answers == [True]
            assert here.timer.size() == 0

        return here.park, announce, here.check, check

    explore(scenario, more_than=50, preemptions=3)


def test_an_operation_moves_to_another_purgatory_while_it_is_forced(explore, world):
    def scenario(explorer):
        one, two = world(explorer), world(explorer)
        one.park()
        two.operation = one.operation

        def check():
            assert one.operation.completions == 1
            assert one.timer.size() == two.timer.size() == 0
            assert one.timer.placements() == two.timer.placements() == []

        return two.park, one.force, check

    explore(scenario, more_than=10)

"""All interleavings of two small programs: wherever one takes or leaves a lock, either may go on.

Both programs run on real threads, one at a time. Before a lock of the purgatory is taken and after
it is left the other one may come first; every sequence of such decisions is run from a fresh start.
"""

import _thread
import math
import threading

import pytest

from purgatory import (
    DelayedOperation,
    DelayedOperationPurgatory,
    InlineExecutor,
    SystemTimer,
    TimerTask,
    VirtualClock,
)


class _ChosenLock:
    """A lock, reentrant if asked, that asks the explorer who goes on before it is taken."""

    def __init__(self, explorer, *, reentrant):
        self._explorer = explorer
        self._reentrant = reentrant
        self.owner = None
        self._depth = 0

    def acquire(self, blocking=True):
        me = _thread.get_ident()
        if self._reentrant and self.owner == me:
            self._depth += 1
            return True
        self._explorer.pause(self if blocking else None)
        if self.owner is not None:
            assert not blocking
            return False
        self.owner = me
        self._depth = 1
        return True

    def release(self):
        assert self.owner == _thread.get_ident()
        self._depth -= 1
        if self._depth == 0:
            self.owner = None
            if self._explorer.pauses_after:
                self._explorer.pause(None)

    def __enter__(self):
        self.acquire()

    def __exit__(self, *failure):
        self.release()


class _Program:
    """A function on a thread that only runs while it has the baton."""

    def __init__(self, explorer, function):
        self._explorer = explorer
        self._function = function
        self.baton = _thread.allocate_lock()
        self.baton.acquire()
        self.waits_for = None
        self.done = False
        self.failure = None
        self.ident = _thread.start_new_thread(self._run, ())

    def _run(self):
        self.baton.acquire()
        try:
            self._function()
        except BaseException as failure:  # noqa: BLE001  it is raised by the explorer
            self.failure = failure
        self.done = True
        self._explorer.give_back()

    def can_go_on(self):
        return not self.done and (self.waits_for is None or self.waits_for.owner is None)


class _Explorer:
    """Runs two programs in the order of given decisions, and of the first choice after them."""

    def __init__(self, *, pauses_after):
        self.pauses_after = pauses_after
        self._home = _thread.allocate_lock()
        self._home.acquire()
        self._programs = {}
        self._decisions = []
        self.options = []

    def lock(self):
        return _ChosenLock(self, reentrant=False)

    def reentrant_lock(self):
        return _ChosenLock(self, reentrant=True)

    def pause(self, lock):
        """Let the explorer decide who goes on; outside of programs go on at once."""
        program = self._programs.get(_thread.get_ident())
        if program is not None:
            program.waits_for = lock
            self.give_back()
            program.baton.acquire()
            program.waits_for = None

    def give_back(self):
        self._home.release()

    def run(self, functions, decisions):
        """Run the programs; return the decisions that were taken, `options` has the choices."""
        programs = [_Program(self, function) for function in functions]
        self._programs = {program.ident: program for program in programs}
        taken = []
        self.options = []
        while any(not program.done for program in programs):
            able = [program for program in programs if program.can_go_on()]
            assert able, f"deadlock after {taken}"
            choice = decisions[len(taken)] if len(taken) < len(decisions) else 0
            taken.append(choice)
            self.options.append(len(able))
            able[choice].baton.release()
            self._home.acquire()
        self._programs = {}
        for program in programs:
            if program.failure is not None:
                raise program.failure
        return taken


@pytest.fixture
def explore(monkeypatch):
    """Run all interleavings: `explore(scenario)` returns how many there are.

    The scenario makes its objects and returns two functions and a check of how it has ended.
    `pauses_after=False` switches only where a lock is taken, for programs of too many steps.
    """

    def explore_all(scenario, *, pauses_after=True):
        decisions, runs = [], 0
        while decisions is not None:
            explorer = _Explorer(pauses_after=pauses_after)
            with monkeypatch.context() as patch:
                patch.setattr(threading, "Lock", explorer.lock)
                patch.setattr(threading, "RLock", explorer.reentrant_lock)
                *functions, check = scenario()
                taken = explorer.run(functions, decisions)
                try:
                    check()
                except AssertionError as failure:
                    failure.add_note(f"decisions: {taken}")
                    raise
            runs += 1
            decisions = _next_decisions(taken, explorer.options)
        return runs

    return explore_all


def _next_decisions(taken, options):
    """Return the next sequence in the order of a depth-first search, None after the last."""
    for index in reversed(range(len(taken))):
        if taken[index] + 1 < options[index]:
            return [*taken[:index], taken[index] + 1]
    return None


class _Operation(DelayedOperation):
    """Can be completed once it is ready; counts what happens to it."""

    def __init__(self, delay_ms=10):
        super().__init__(delay_ms)
        self.ready = False
        self.completions = 0
        self.expirations = 0

    def try_complete(self):
        return self.ready and self.force_complete()

    def on_complete(self):
        self.completions += 1

    def on_expiration(self):
        self.expirations += 1


class _World:
    """A purgatory in virtual time and what programs do to it."""

    def __init__(self, purge_interval=1_000):
        self.clock = VirtualClock()
        self.timer = SystemTimer("test", self.clock, InlineExecutor())
        self.purgatory = DelayedOperationPurgatory(
            "test", self.timer, reaper_enabled=False, purge_interval=purge_interval
        )
        self.operation = _Operation()

    def park(self, keys=("a",)):
        self.purgatory.try_complete_else_watch(self.operation, keys)
        return self

    def announce(self, key="a"):
        self.operation.ready = True
        self.purgatory.check_and_complete(key)

    def expire(self):
        self.clock.advance(10)
        self.purgatory.advance_clock(0)

    def ends_once(self, completions=1):
        assert self.operation.completions == completions
        assert self.operation.expirations <= completions
        self.is_whole()

    def is_whole(self):
        """Check that nothing that has ended is left anywhere."""
        assert self.timer.size() == len(self.timer.placements()) == 0
        for key in ("a", "b"):
            self.purgatory.check_and_complete(key)
        assert self.purgatory.watched() == 0
        assert self.purgatory.statistics().watched_keys == 0


def test_the_explorer_runs_every_interleaving_once(explore):
    seen = []

    def scenario():
        lock, order = threading.Lock(), []

        def program(name):
            for _ in range(2):
                with lock:
                    order.append(name)

        return (
            lambda: program("x"),
            lambda: program("y"),
            lambda: seen.append("".join(order)),
        )

    # Each program pauses four times, none with the lock: five parts each, in any order.
    assert explore(scenario) == math.comb(10, 5)
    assert set(seen) == {
        "".join("x" if bit == "1" else "y" for bit in f"{number:04b}")
        for number in range(16)
        if number.bit_count() == 2
    }


def test_the_explorer_finds_a_lost_update(explore):
    def scenario():
        lock, total = threading.Lock(), [0]

        def add():
            with lock:
                seen = total[0]
            with lock:
                total[0] = seen + 1

        def check():
            assert total == [2]

        return add, add, check

    with pytest.raises(AssertionError):
        explore(scenario)


def test_the_explorer_finds_a_deadlock(explore):
    def scenario():
        one, two = threading.Lock(), threading.Lock()

        def take(first, second):
            with first, second:
                pass

        return lambda: take(one, two), lambda: take(two, one), lambda: None

    with pytest.raises(AssertionError, match="deadlock"):
        explore(scenario)


def test_an_event_while_an_operation_is_parked_is_not_lost(explore):
    def scenario():
        world = _World()
        return world.park, world.announce, world.ends_once

    assert explore(scenario) > 50


def test_expiry_and_event_complete_an_operation_once(explore):
    def scenario():
        world = _World().park()
        return world.announce, world.expire, world.ends_once

    assert explore(scenario) > 50


def test_events_on_two_keys_complete_an_operation_once(explore):
    def scenario():
        world = _World().park(("a", "b"))
        return world.announce, lambda: world.announce("b"), world.ends_once

    assert explore(scenario) > 50


def test_an_operation_that_is_forced_while_it_is_parked_does_not_stay(explore):
    def scenario():
        world = _World()
        return world.park, world.operation.force_complete, world.ends_once

    assert explore(scenario) > 100


def test_an_operation_that_expires_while_it_is_parked_ends_once(explore):
    def scenario():
        world = _World()

        def check():
            world.expire()  # it was parked after the first look, or expired in it
            world.ends_once()

        return world.park, world.expire, check

    assert explore(scenario) > 50


def test_cancelling_a_key_against_an_event_completes_or_returns_the_operation(explore):
    def scenario():
        world = _World().park()
        cancelled = []

        def check():
            # Whoever cancels may be told of an operation that is being completed just then; it
            # never gets lost between the two.
            assert world.operation.completions + len(cancelled) >= 1
            assert world.operation.completions <= 1
            world.is_whole()

        return (
            world.announce,
            lambda: cancelled.extend(world.purgatory.cancel_for_key("a")),
            check,
        )

    assert explore(scenario) > 100


def test_a_purge_removes_nothing_that_waits(explore):
    def scenario():
        world = _World(purge_interval=0)
        gone = _Operation()
        world.purgatory.try_complete_else_watch(gone, ("a", "b"))
        gone.force_complete()

        def check():
            assert world.timer.size() == 1
            world.announce()
            world.ends_once()

        return world.park, lambda: world.purgatory.advance_clock(0), check

    assert explore(scenario, pauses_after=False) > 50


def test_an_operation_parked_while_the_last_of_its_key_leaves_is_found_by_the_next_event(explore):
    def scenario():
        world = _World()
        last = _Operation()
        world.purgatory.try_complete_else_watch(last, ("a",))
        last.ready = True

        def check():
            assert last.completions == 1
            world.announce()
            world.ends_once()

        return world.park, lambda: world.purgatory.check_and_complete("a"), check

    assert explore(scenario, pauses_after=False) > 50


def test_shutdown_while_an_operation_is_parked_leaves_nothing_in_the_timer(explore):
    def scenario():
        world = _World()
        refused = []

        def park():
            try:
                world.park()
            except RuntimeError as refusal:
                refused.append(refusal)

        def check():
            assert world.timer.size() == 0
            assert world.operation.completions == 0

        return park, world.purgatory.shutdown, check

    assert explore(scenario) > 100


class _Task(TimerTask):
    def __init__(self, delay_ms):
        super().__init__(delay_ms)
        self.runs = 0

    def run(self):
        self.runs += 1


@pytest.mark.parametrize("delay_ms", [10, 450])
def test_a_task_that_is_cancelled_while_its_bucket_expires_runs_or_not_and_is_gone(
    explore, delay_ms
):
    def scenario():
        clock = VirtualClock()
        timer = SystemTimer("test", clock, InlineExecutor())
        task = _Task(delay_ms)
        timer.add(task)

        def expire():
            for due_ms in (400, 440, 450):
                clock.advance_to(due_ms)
                timer.advance_clock(0)

        def check():
            assert task.runs <= 1
            assert timer.size() == len(timer.placements()) == 0

        return task.cancel, expire, check

    assert explore(scenario) > 50


def test_a_task_that_two_timers_want_waits_in_one_of_them(explore):
    def scenario():
        clock = VirtualClock()
        timers = [SystemTimer(name, clock, InlineExecutor()) for name in ("one", "two")]
        task = _Task(10)
        timers[0].add(task)

        def check():
            placed = [timer for timer in timers if timer.placements()]
            assert [timer.size() for timer in placed] in ([], [1])
            assert sum(timer.size() for timer in timers) <= 1

        return lambda: timers[1].add(task), task.cancel, check

    assert explore(scenario) > 50

"""All interleavings of two small programs: wherever one may be interrupted, either may go on.

Both programs run on real threads, one at a time, and every sequence of decisions who goes on is run
from a fresh start. In pure Python a decision is made before a lock of the purgatory is taken and
after it is left. Compiled code is only interrupted where it calls into the interpreter: there it is
made in the user's code, keys that are hashed and clocks that are read under a lock among it, and at
the gate where the native locks wait.
"""

import _thread
import sys
import threading

import pytest

from purgatory import (
    DelayedOperation,
    DelayedOperationPurgatory,
    InlineExecutor,
    SystemTimer,
    VirtualClock,
    compiled,
)


class _ChosenLock:
    """A lock that asks the explorer who goes on before it is taken."""

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
        # A gate, which only the native build has, is opened by whoever leaves.
        assert self.owner == _thread.get_ident() or (compiled and self.owner is not None)
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

    def interrupt(self):
        """Pause in the user's code, if compiled code called it."""
        if compiled:
            self.pause(None)

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

    def patch(self, monkeypatch):
        """Have the purgatory make locks of this explorer from now on."""
        monkeypatch.setattr(threading, "Lock", self.lock)
        for name, module in list(sys.modules.items()):
            if name.startswith("purgatory."):
                for kind, lock in (("LeafLock", self.lock), ("ReentrantLock", self.reentrant_lock)):
                    if hasattr(module, kind):
                        monkeypatch.setattr(module, kind, lock)


@pytest.fixture
def explore(monkeypatch):
    """Run all interleavings: `explore(scenario)` returns how many there are.

    The scenario is given the explorer, makes its objects, and returns two functions and a check of
    how it has ended. `pure` and `native`: there must be more than that on the build in question.
    `pauses_after=False` switches only where a lock is taken, for programs of too many steps.
    """

    def explore_all(scenario, *, pure=1, native=1, pauses_after=True):
        decisions, runs = [], 0
        while decisions is not None:
            explorer = _Explorer(pauses_after=pauses_after)
            with monkeypatch.context() as patch:
                explorer.patch(patch)
                *functions, check = scenario(explorer)
                taken = explorer.run(functions, decisions)
                try:
                    check()
                except AssertionError as failure:
                    failure.add_note(f"decisions: {taken}")
                    raise
            runs += 1
            decisions = _next_decisions(taken, explorer.options)
        assert runs > (native if compiled else pure)
        return runs

    return explore_all


def _next_decisions(taken, options):
    """Return the next sequence in the order of a depth-first search, None after the last."""
    for index in reversed(range(len(taken))):
        if taken[index] + 1 < options[index]:
            return [*taken[:index], taken[index] + 1]
    return None


class _Clock(VirtualClock):
    """Can be interrupted where it is read."""

    def __init__(self, explorer):
        super().__init__()
        self._explorer = explorer

    def now_ms(self):
        self._explorer.interrupt()
        return super().now_ms()

    def deadline_ms(self, delay_ms):
        self._explorer.interrupt()
        return super().deadline_ms(delay_ms)


class _Key:
    """Can be interrupted where it is hashed."""

    def __init__(self, explorer, name):
        self._explorer = explorer
        self._name = name

    def __hash__(self):
        self._explorer.interrupt()
        return hash(self._name)

    def __eq__(self, other):
        return self._name == other._name


class _Operation(DelayedOperation):
    """Can be completed once it is ready; counts what happens to it."""

    def __init__(self, explorer, delay_ms=10):
        super().__init__(delay_ms)
        self._explorer = explorer
        self.ready = False
        self.completions = 0
        self.expirations = 0

    def try_complete(self):
        ready = self.ready
        self._explorer.interrupt()
        return ready and self.force_complete()

    def on_complete(self):
        self.completions += 1
        self._explorer.interrupt()

    def on_expiration(self):
        self.expirations += 1


class _World:
    """A purgatory in virtual time and what programs do to it."""

    def __init__(self, explorer, purge_interval=1_000):
        self._explorer = explorer
        self.clock = _Clock(explorer)
        self.timer = SystemTimer("test", self.clock, InlineExecutor())
        self.purgatory = DelayedOperationPurgatory(
            "test", self.timer, reaper_enabled=False, purge_interval=purge_interval
        )
        self.operation = self.new_operation()

    def new_operation(self):
        return _Operation(self._explorer)

    def key(self, name):
        return _Key(self._explorer, name)

    def park(self, names=("a",), operation=None):
        keys = [self.key(name) for name in names]
        self.purgatory.try_complete_else_watch(operation or self.operation, keys)
        return self

    def announce(self, name="a"):
        self.operation.ready = True
        self.purgatory.check_and_complete(self.key(name))

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
        for name in ("a", "b"):
            self.purgatory.check_and_complete(self.key(name))
        assert self.purgatory.watched() == 0
        assert self.purgatory.statistics().watched_keys == 0


@pytest.fixture
def world():
    """Make a world: `world(explorer, purge_interval=1_000)`."""
    return _World


@pytest.fixture
def clock():
    """Make a clock that can be interrupted: `clock(explorer)`."""
    return _Clock

"""All interleavings of small programs: wherever one may be interrupted, another may go on.

The programs run on real threads, one at a time, and every sequence of decisions who goes on is run
from a fresh start. A decision is made before a lock is taken and in the operation's own methods:
threads share nothing of a purgatory but what is guarded by its locks, so a switch elsewhere is the
same as one there. What little is read without a lock has decisions of its own: see
`FieldsOperation`, which has one after each lock too.
"""

import _thread
import threading

import pytest
from broker_sim_purgatory import (
    DelayedOperation,
    DelayedOperationPurgatory,
    InlineExecutor,
    SystemTimer,
    VirtualClock,
    delayed_operation,
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
            assert not blocking, "the explorer let a program go on that cannot"
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
                self._explorer.pause()

    def locked(self):  # a Condition of Python 3.14 has it from its lock
        return self.owner is not None

    def _is_owned(self):
        return self.owner == _thread.get_ident()

    def __enter__(self):
        self.acquire()

    def __exit__(self, *failure):
        self.release()


class _Program:
    """A thread that only runs while it has the baton: one function of each run after the other."""

    def __init__(self):
        self.baton = _thread.allocate_lock()
        self.baton.acquire()
        self.ident = _thread.start_new_thread(self._run_all, ())

    def begin(self, explorer, function):
        """Run that function next; None ends the thread."""
        self._explorer = explorer
        self._function = function
        self.waits_for = None
        self.done = False
        self.failure = None

    def _run_all(self):
        self.baton.acquire()
        while self._function is not None:
            try:
                self._function()
            except BaseException as failure:  # noqa: BLE001 - it is raised by the explorer
                self.failure = failure
            self.done = True
            self._explorer.hand_over(self)
            self.baton.acquire()

    def can_go_on(self):
        return not self.done and (self.waits_for is None or self.waits_for.owner is None)


class _Explorer:
    """Runs programs in the order of given decisions, and of the first choice after them.

    The first choice is the program that has run last. To choose another one although that one can
    go on is a preemption; there may be at most `preemptions` of them, any number if that is None.
    The program that pauses decides who goes on, so that no thread is switched where it is itself.
    """

    def __init__(self, preemptions):
        self._left = preemptions
        self.pauses_after = False
        self._home = _thread.allocate_lock()
        self._home.acquire()
        self._programs = {}
        self._decisions = []
        self._last = None
        self._failure = None
        self.taken = []
        self.options = []

    def lock(self):
        return _ChosenLock(self, reentrant=False)

    def reentrant_lock(self):
        return _ChosenLock(self, reentrant=True)

    def pause(self, lock=None):
        """Decide who goes on; outside of programs go on at once."""
        program = self._programs.get(_thread.get_ident())
        if program is not None:
            program.waits_for = lock
            self.hand_over(program)
            program.waits_for = None

    def hand_over(self, program):
        """Let a program go on, or `run` if all are done; returns when it is this one's turn again."""
        try:
            chosen = self._choose()
        except BaseException as failure:  # noqa: BLE001 - raised by `run`, where the others wait for ever
            self._failure, chosen = failure, None
        waits = not program.done  # it may be of the next run as soon as this one is over
        if chosen is not program:
            (self._home if chosen is None else chosen.baton).release()
            if waits:
                program.baton.acquire()

    def _choose(self):
        """Return the program that goes on by the decisions, None after the last one."""
        programs = self._programs.values()
        able = [program for program in programs if program.can_go_on()]
        if not able:
            assert all(program.done for program in programs), f"deadlock after {self.taken}"
            return None
        if self._last in able:
            able.sort(key=lambda program: program is not self._last)
            if self._left == 0:
                able = able[:1]
        place = len(self.taken)
        choice = self._decisions[place] if place < len(self._decisions) else 0
        if choice > 0 and able[0] is self._last and self._left is not None:
            self._left -= 1
        self.taken.append(choice)
        self.options.append(len(able))
        self._last = able[choice]
        return self._last

    def run(self, programs, functions, decisions):
        """Run the functions; `taken` has the decisions that were taken, `options` the choices."""
        self._decisions = decisions
        for program, function in zip(programs, functions, strict=True):
            program.begin(self, function)
        self._programs = {program.ident: program for program in programs}
        self._choose().baton.release()
        self._home.acquire()
        self._programs = {}
        if self._failure is not None:
            raise self._failure
        for program in programs:
            if program.failure is not None:
                raise program.failure

    def patch(self, monkeypatch):
        """Have the purgatory make locks of this explorer from now on."""
        monkeypatch.setattr(threading, "Lock", self.lock)
        monkeypatch.setattr(threading, "RLock", self.reentrant_lock)
        monkeypatch.setattr(delayed_operation, "RLock", self.reentrant_lock)
        monkeypatch.setattr(delayed_operation.UNPARKED, "lock", self.lock())


@pytest.fixture
def explore(monkeypatch):
    """Run all interleavings: `explore(scenario)` returns how many there are.

    The scenario is given the explorer, makes its objects, and returns two or more functions and a
    check of how it has ended. There must be more than `more_than` interleavings: a scenario that
    has none proves nothing. `preemptions` limits the switches, for programs of too many steps.
    """

    def explore_all(scenario, *, more_than=1, preemptions=None):
        decisions, runs, programs = [], 0, []
        while decisions is not None:
            explorer = _Explorer(preemptions)
            with monkeypatch.context() as patch:
                explorer.patch(patch)
                *functions, check = scenario(explorer)
                programs = programs or [_Program() for _ in functions]
                explorer.run(programs, functions, decisions)
                try:
                    check()
                except AssertionError as failure:
                    failure.add_note(f"decisions: {explorer.taken}")
                    raise
            runs += 1
            decisions = _next_decisions(explorer.taken, explorer.options)
        for program in programs:
            program.begin(None, None)
            program.baton.release()
        assert runs > more_than
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

    def __init__(self, explorer, lock="own"):
        self.explorer = explorer
        self.ready = False
        self.completions = 0
        self.expirations = 0
        self.threads_in_try = []
        super().__init__(10, None if lock in {"own", "none"} else lock)
        if lock == "none":
            self.lock = None

    def try_complete(self):
        self.threads_in_try.append(_thread.get_ident())
        ready = self.ready
        self.explorer.pause()
        completed = ready and self.force_complete()
        self.threads_in_try.remove(_thread.get_ident())
        return completed

    def on_complete(self):
        self.completions += 1
        if self.lock is not None:
            assert set(self.threads_in_try) <= {_thread.get_ident()}, "it completes while another thread tries it"
        self.explorer.pause()

    def on_expiration(self):
        self.expirations += 1


def _paused(name):
    """Return what stands for a field and lets the explorer decide before each access to it."""
    field = getattr(DelayedOperation, name)

    def read(operation):
        operation.explorer.pause()
        return field.__get__(operation)

    def write(operation, value):
        operation.explorer.pause()
        field.__set__(operation, value)

    return property(read, write)


class FieldsOperation(_Operation):
    """Can be interrupted at each access to a field that is also read without a lock.

    Compiled code reads fields directly, so this is for pure Python.
    """

    completed = _paused("completed")
    owner = _paused("owner")


class _Ends:
    """An observer that notes what it is told, and can be interrupted while it does."""

    def __init__(self, explorer):
        self._explorer = explorer
        self.tries = self.parks = 0
        self.ends = []

    def tried(self, operation, keys):
        self._explorer.pause()
        self.tries += 1

    def parked(self, operation, keys):
        self._explorer.pause()
        self.parks += 1

    def completed(self, operation, by):
        self.ends.append(by)
        self._explorer.pause()

    def expired(self, operation, lateness_ms):
        self.ends.append("expired")
        self._explorer.pause()

    def cancelled(self, operation):
        self.ends.append("cancelled")
        self._explorer.pause()


class _World:
    """A purgatory in virtual time, an operation on keys a and b, and what programs do to them."""

    def __init__(self, explorer, lock="own", *, purge_interval=1_000, observed=False, fields=False):
        self._explorer = explorer
        explorer.pauses_after = fields
        self._make = FieldsOperation if fields else _Operation
        self._lock = lock
        self.clock = VirtualClock()
        self.timer = SystemTimer("test", self.clock, InlineExecutor())
        self.observer = _Ends(explorer) if observed else None
        self.purgatory = DelayedOperationPurgatory(
            "test", self.timer, reaper_enabled=False, purge_interval=purge_interval, observer=self.observer
        )
        self.operation = self.new_operation()
        self.cancelled = []
        self.refused = False

    def new_operation(self):
        return self._make(self._explorer, self._lock)

    def park(self, operation=None):
        try:
            self.purgatory.try_complete_else_watch(operation or self.operation, ["a", "b"])
        except RuntimeError:
            self.refused = True

    def announce(self, key="a"):
        self.operation.ready = True
        self.purgatory.check_and_complete(key)

    def announce_b(self):
        self.announce("b")

    def check(self):
        """Announce an event before which nothing has changed."""
        self.purgatory.check_and_complete("a")

    def force(self):
        self.operation.force_complete()

    def expire(self):
        self.clock.advance(10)
        self.purgatory.advance_clock(0)

    def purge(self):
        self.purgatory.advance_clock(0)

    def cancel(self):
        self.cancelled += self.purgatory.cancel_for_key("a")

    def shutdown(self):
        self.purgatory.shutdown()

    def shutdown_completing(self):
        self.purgatory.shutdown(complete_parked=True)

    def is_whole(self):
        """Check that each operation has ended once, or waits in the timer and under its keys."""
        operation = self.operation
        placed = [each.task for each in self.timer.placements()]
        assert self.timer.size() == len(placed) == len(set(placed))
        assert operation.completions == operation.is_completed()
        assert operation.expirations <= operation.completions
        watched = dict(self.purgatory.watch_lists())
        if operation in placed:
            assert not operation.is_completed()
            assert operation in watched["a"]
            assert operation in watched["b"]
        elif not operation.is_completed() and not self.cancelled:
            assert operation not in [*watched.get("a", ()), *watched.get("b", ())]

    def ends(self):
        """Check that the operation ends now if it has not, and that nothing of it is left."""
        self.is_whole()
        self.announce("a")
        self.announce("b")
        gone = self.refused or self.cancelled
        assert self.operation.completions == 1 or gone
        self.is_whole()
        statistics = self.purgatory.statistics()
        assert (statistics.num_delayed, statistics.watched, statistics.watched_keys) == (0, 0, 0)
        if self.observer is not None:
            assert len(self.observer.ends) == self.observer.tries
            assert self.observer.parks <= self.observer.tries


@pytest.fixture
def world():
    """Make a world: `world(explorer, lock="own")`; see _World."""
    return _World

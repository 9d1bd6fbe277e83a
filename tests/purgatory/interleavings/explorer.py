"""All interleavings of small programs: wherever one may be interrupted, another may go on.

The programs run on real threads, one at a time, and every sequence of decisions who goes on is run
from a fresh start. A decision is made before a lock is taken and in the operation's own methods:
threads share nothing of a purgatory but what is guarded by its locks, so a switch elsewhere is the
same as one there. What little is read without a lock has decisions of its own: see
`FieldsOperation` in world.py, which has one after each lock too.
"""

import _thread
import threading

from broker_sim_purgatory import delayed_operation


class ChosenLock:
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


class Program:
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


class Explorer:
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
        return ChosenLock(self, reentrant=False)

    def reentrant_lock(self):
        return ChosenLock(self, reentrant=True)

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


def next_decisions(taken, options):
    """Return the next sequence in the order of a depth-first search, None after the last."""
    for index in reversed(range(len(taken))):
        if taken[index] + 1 < options[index]:
            return [*taken[:index], taken[index] + 1]
    return None

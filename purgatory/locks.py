"""The locks of timer and purgatory: what they cost decides what a request costs.

Kafka uses those of java.util.concurrent. In pure Python `LeafLock` is `threading.Lock` itself, and
`ReentrantLock` is `threading.RLock`. In the native build they are the classes below, which rest on
what Python.h promises: compiled code keeps the interpreter's own lock until it calls into the
interpreter or blocks. So reading a flag and setting it is one step, and nobody else can look in
between. Run by the interpreter it would not be one. On a Python without that lock there is no
native build (see hatch_build.py).
"""

import _thread
import threading
from types import TracebackType
from typing import Final, final

from purgatory.native import mypyc_attr

_get_ident: Final = threading.get_ident


@mypyc_attr(acyclic=True)
class _Gated:
    """Who has lost the interpreter inside, and who waits for that at the gate.

    A holder can lose it to a key's `__eq__`, to the garbage collector or to an operation's own
    code. The gate is a real lock that is open while there is something to look at.
    """

    __slots__ = ("_gate", "_held", "_opened", "_waiting")

    def __init__(self) -> None:
        self._held = False
        self._waiting = 0
        self._opened = False
        self._gate: threading.Lock | None = None

    def _wait(self) -> None:
        """Return when nobody holds it; from there to taking it is one step."""
        gate = self._gate
        if gate is None:
            gate = threading.Lock()
            gate.acquire()
            # Making it may have run the garbage collector, and that another thread.
            if self._gate is None:
                self._gate = gate
            else:
                gate = self._gate
        self._waiting += 1
        try:
            while self._held:
                gate.acquire()
                self._opened = False
        finally:
            self._waiting -= 1

    def _leave(self) -> None:
        """Let one of those who wait look whether it is free."""
        self._held = False
        if self._waiting > 0 and not self._opened:
            gate = self._gate
            assert gate is not None
            self._opened = True
            gate.release()


@final
@mypyc_attr(acyclic=True)
class LeafLock(_Gated):
    """Excludes threads from each other; not reentrant. No other lock is taken under it."""

    __slots__ = ()

    def acquire(self, blocking: bool = True) -> bool:
        """Take it; False if somebody else has it and `blocking` is not wanted."""
        if self._held:
            if not blocking:
                return False
            self._wait()
        self._held = True
        return True

    def release(self) -> None:
        """Give it back."""
        self._leave()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()


@final
@mypyc_attr(acyclic=True)
class ReentrantLock(_Gated):
    """Excludes threads from each other; the one that holds it may take it again."""

    __slots__ = ("_depth", "_owner")

    def __init__(self) -> None:
        self._held = False
        self._waiting = 0
        self._opened = False
        self._gate = None
        self._owner = 0
        self._depth = 0

    def acquire(self, blocking: bool = True) -> bool:
        """Take it (once more); False if another thread has it and `blocking` is not wanted."""
        me = _get_ident()
        if self._held:
            if self._owner == me:
                self._depth += 1
                return True
            if not blocking:
                return False
            self._wait()
        self._held = True
        self._owner = me
        self._depth = 1
        return True

    def release(self) -> None:
        """Give it back as often as it was taken; RuntimeError if this thread does not hold it."""
        if not self._held or self._owner != _get_ident():
            raise RuntimeError("cannot release a lock that is not held")
        self.leave()

    def leave(self) -> None:
        """`release` for code that has taken it itself, so nobody needs to look who holds it."""
        self._depth -= 1
        if self._depth == 0:
            self._leave()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


ONE_STEP: Final = type(LeafLock.acquire).__name__ != "function"
"""Whether this is compiled, so that reading a flag and setting it is one step."""

if not ONE_STEP:
    globals().update(LeafLock=_thread.allocate_lock, ReentrantLock=_thread.RLock)

"""The scheduler of a cluster: an asyncio event loop, its clock, and threads for long work.

A loop in virtual time has a clock of its own; every other loop uses the system's.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from broker_sim_purgatory import SystemClock
from broker_sim_purgatory.machine_time import monotonic_ns

from broker_sim.runtime.system import Thread, are_sockets_replaced, socket_pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock

_NS_PER_MS = 1_000_000
_NS_PER_SECOND = 1_000_000_000


class _SelectorEventLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, with a self-pipe of real sockets even if a test has replaced those of `socket`."""

    def _make_self_pipe(self) -> None:
        self._ssock, self._csock = socket_pair()
        self._ssock.setblocking(False)
        self._csock.setblocking(False)
        self._internal_fds += 1  # type: ignore[attr-defined]
        self._add_reader(self._ssock.fileno(), self._read_from_self)  # type: ignore[attr-defined]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop if it is installed (extra `fast`), otherwise asyncio's."""
    # If uvloop were imported now, it would use the replaced sockets for good.
    if "uvloop" in sys.modules or not are_sockets_replaced():
        with suppress(ImportError):
            import uvloop  # noqa: PLC0415 - an extra

            loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
            return loop
    return asyncio.new_event_loop() if sys.platform == "win32" else _SelectorEventLoop()


def _real_time(loop: asyncio.AbstractEventLoop) -> None:
    """Make an asyncio loop use real time although `time.monotonic` is replaced, so that its timers run in time."""
    if isinstance(loop, asyncio.BaseEventLoop) and type(loop).time is asyncio.BaseEventLoop.time:
        loop.time = lambda: monotonic_ns() / _NS_PER_SECOND  # type: ignore[method-assign]


class WorkQueue:
    """A queue of long work that shares no data with the loop, and the thread that does it.

    Work is done one piece at a time: more threads would keep the GIL from the loop for longer. The program's exit
    does not wait for it. Thread rule: the loop's thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], object]]] = deque()
        self._is_busy = False

    def run(self, work: Callable[[], Any], on_done: Callable[[Any], object]) -> None:
        """Run `work()` in a thread, then `on_done(result)` on the loop.

        Work must not raise; if it does, the loop's exception handler gets the error.
        """
        self._waiting.append((work, on_done))
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        self._is_busy = bool(self._waiting)
        if not self._waiting:
            return
        work, on_done = self._waiting.popleft()

        def outcome() -> tuple[Any, Exception | None]:
            try:
                return work(), None
            except Exception as error:  # noqa: BLE001 - the queue goes on
                return None, error

        def done(outcome: tuple[Any, Exception | None]) -> None:
            self._next()
            result, error = outcome
            if error is None:
                on_done(result)
            else:
                message = "work beside the loop has failed"
                self._loop.call_exception_handler({"message": message, "exception": error})

        wait_beside(self._loop, outcome, done)


def wait_beside(loop: asyncio.AbstractEventLoop, work: Callable[[], Any], on_done: Callable[[Any], object]) -> None:
    """Run `work()`, which must not raise, in a new thread, then `on_done(result)` on the loop if it is open."""

    def run() -> None:
        result = work()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(on_done, result)

    # Not a thread of the loop's executor: closing the loop waits for those.
    Thread(target=run, name="broker-sim-waits", daemon=True).start()


class Scheduler:
    """Runs callbacks one after the other on an event loop; the only source of time and order.

    Thread rule: all but `call_soon_threadsafe` on the loop's thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        clock: Clock | None = getattr(loop, "clock", None)
        self.is_virtual = clock is not None
        self._clock = SystemClock() if clock is None else clock
        _real_time(loop)
        # uvloop counts from a reading rounded down to whole milliseconds, asyncio from an exact one.
        self._rounding_ms = 0 if isinstance(loop, asyncio.BaseEventLoop) else 1
        self._long_work = WorkQueue(loop)
        self._short_work = WorkQueue(loop)
        # In virtual time a test's process may call a broker directly, and end before the timers that this sets.
        self.context = copy_context() if self.is_virtual else None
        """Context of all callbacks; None in real time, where each runs in its caller's."""
        self._call_at_ns: Callable[..., asyncio.TimerHandle] | None
        self._call_at_ns = getattr(loop, "call_at_ns", None)
        self.call_soon = partial(loop.call_soon, context=self.context)
        """Runs a callback after all that are already due."""
        self.call_soon_threadsafe = loop.call_soon_threadsafe
        """Runs a callback soon; from any thread."""

    @property
    def clock(self) -> Clock:
        """The loop's clock."""
        return self._clock

    def call_later(self, delay_ms: int, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Run `callback(*args)` once `delay_ms` milliseconds are over, never before."""
        if self._call_at_ns is not None:  # a virtual loop counts in whole nanoseconds
            due_ns = self._clock.now_ns + delay_ms * _NS_PER_MS  # type: ignore[attr-defined]
            return self._call_at_ns(due_ns, callback, args, self.context)
        if delay_ms > 0:
            delay_ms += self._rounding_ms
        return self.loop.call_later(delay_ms / 1000, callback, *args, context=self.context)

    def run_beside(self, work: Callable[[], Any], on_done: Callable[[Any], object], *, is_short: bool = False) -> None:
        """Run `work()`, which must not raise, in a thread, then `on_done(result)` here; both at once in virtual time.

        Work that `is_short` has a queue of its own, so it does not wait for long work.
        """
        if self.is_virtual:
            on_done(work())
        elif is_short:
            self._short_work.run(work, on_done)
        else:
            self._long_work.run(work, on_done)

    def wait_beside(self, work: Callable[[], Any], on_done: Callable[[Any], object]) -> None:
        """Run `work()`, which may block but not raise, in a thread of its own, then `on_done(result)` here.

        In virtual time both run at once. Closing the loop does not wait for the thread.
        """
        if self.is_virtual:
            on_done(work())
        else:
            wait_beside(self.loop, work, on_done)

    def report_error(self, message: str, error: Exception) -> None:
        """Pass the error to the loop: a real loop logs it, a virtual one ends the run with it."""
        self.loop.call_exception_handler({"message": message, "exception": error})

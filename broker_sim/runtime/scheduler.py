"""The scheduler of a cluster: an asyncio event loop, and its clock.

A loop in virtual time has a clock of its own; every other loop uses the system's.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from broker_sim_purgatory import SystemClock

from broker_sim.runtime.beside import BesideLoop, wait_beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock

_NS_PER_MS = 1_000_000


class LoopScheduler:
    """A `Scheduler` on an event loop. Thread rule: all but `call_soon_threadsafe` on its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        clock: Clock | None = getattr(loop, "clock", None)
        self.is_virtual = clock is not None
        self._clock = SystemClock() if clock is None else clock
        # uvloop counts from a reading rounded down to whole milliseconds, asyncio from an exact one.
        self._rounding_ms = 0 if isinstance(loop, asyncio.BaseEventLoop) else 1
        self._beside = BesideLoop(loop)
        self._beside_short = BesideLoop(loop)
        # In virtual time a process of the test may call a broker directly, and end before its timers.
        self.context = copy_context() if self.is_virtual else None
        """What callbacks run in; None in real time, where each has that of who asked for it."""
        self._call_at_ns: Callable[..., asyncio.TimerHandle] | None
        self._call_at_ns = getattr(loop, "call_at_ns", None)
        self.call_soon = partial(loop.call_soon, context=self.context)
        self.call_soon_threadsafe = loop.call_soon_threadsafe

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
        """Run `work()` in a thread, then `on_done(result)` here; in virtual time both at once.

        What `is_short` waits for other short work only.
        """
        if self.is_virtual:
            on_done(work())
        elif is_short:
            self._beside_short.run(work, on_done)
        else:
            self._beside.run(work, on_done)

    def wait_beside(self, work: Callable[[], Any], on_done: Callable[[Any], object]) -> None:
        """Do the same with work that waits, in a thread of its own, which does not hold up the end of the loop."""
        if self.is_virtual:
            on_done(work())
        else:
            wait_beside(self.loop, work, on_done)

    def report_error(self, message: str, error: Exception) -> None:
        """Pass the error to the loop: a real one logs it, a virtual one ends the run with it."""
        self.loop.call_exception_handler({"message": message, "exception": error})

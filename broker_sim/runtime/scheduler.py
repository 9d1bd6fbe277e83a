"""Real time: the scheduler that runs a cluster on an asyncio event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from purgatory import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from purgatory import Clock

__all__ = ["AsyncioScheduler"]


class AsyncioScheduler:
    """A `Scheduler` on the running event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._clock = SystemClock()
        # uvloop counts from a reading rounded down to whole milliseconds, asyncio from an exact one.
        self._rounding_ms = 0 if isinstance(loop, asyncio.BaseEventLoop) else 1
        self.call_soon = loop.call_soon
        self.call_soon_threadsafe = loop.call_soon_threadsafe

    @property
    def clock(self) -> Clock:
        """The system's clock."""
        return self._clock

    def call_later(
        self, delay_ms: int, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Run ``callback(*args)`` once ``delay_ms`` milliseconds are over, never before."""
        if delay_ms > 0:
            delay_ms += self._rounding_ms
        return self._loop.call_later(delay_ms / 1000, callback, *args)

    def report_error(self, message: str, error: Exception) -> None:
        """Log the error with its traceback, as asyncio does with an error in a callback."""
        self._loop.call_exception_handler({"message": message, "exception": error})

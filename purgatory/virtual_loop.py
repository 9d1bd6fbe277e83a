"""An asyncio event loop in virtual time: when everything waits, its clock jumps to what is next.

Kafka has no counterpart; trio's autojump clock is the model.
"""

import asyncio
import math
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from purgatory.clock import VirtualClock

_ResultT = TypeVar("_ResultT")

_MS_PER_SECOND = 1_000
_RESOLUTION_MS = 0.001
"""Less than that is not time, but comes from subtracting times that are floats of seconds."""


def run_virtual(main: Coroutine[Any, Any, _ResultT], clock: VirtualClock | None = None) -> _ResultT:
    """Run `main` as asyncio.run does, in virtual time: its timeouts and sleeps take no time.

    Purgatories with a LoopTimer, `asyncio.sleep` and `asyncio.timeout` follow the same clock.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is that of `clock`, whole milliseconds.

    Time moves only when no callback is ready and no file descriptor is: then to the next timer.
    So other threads and processes, which need real time, seem infinitely slow to it.
    """

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = VirtualClock() if clock is None else clock
        super().__init__(_JumpingSelector(self.clock))
        self._clock_resolution = _RESOLUTION_MS / _MS_PER_SECOND

    def time(self) -> float:
        """Return the clock's time in seconds."""
        return self.clock.now_ms() / _MS_PER_SECOND


class _JumpingSelector(selectors.DefaultSelector):
    """Moves the clock instead of waiting; waits only if nothing is scheduled at all."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready and timeout > 0:
            self._clock.advance(math.ceil(timeout * _MS_PER_SECOND - _RESOLUTION_MS))
        return ready

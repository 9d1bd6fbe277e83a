"""Lets time move where a program waits without a delay, again and again, for time to move.

`while monotonic() <= deadline: await wait(tasks, timeout=deadline - monotonic())` ends on a real computer
because each turn takes some time. aiokafka waits so for its next auto-commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.runtime.virtual.clock import NS_PER_US

if TYPE_CHECKING:
    from broker_sim.runtime.virtual.clock import LoopClock

MAX_TIMERS_WITHOUT_DELAY: Final = 10
"""So many timers without a delay are run at one time; each further one takes a microsecond."""


class Standstill:
    """Counts the timers without a delay of one loop, and how far the clock has come by itself."""

    __slots__ = ("_clock", "_timers", "_timers_ns", "nudged_ns", "progress_ns")

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self._timers = 0
        self._timers_ns = 0
        self.nudged_ns = 0
        """Until when the last such microsecond takes."""
        self.progress_ns = 0
        """The last time that the clock has come to for another reason; the loop sets it."""

    def due_ns(self) -> int:
        """Count a timer without a delay; return when it is due: now, or once time has moved."""
        now_ns = self._clock.now_ns
        if now_ns not in {self._timers_ns, self.nudged_ns}:
            self._timers = 0
        self._timers_ns = now_ns
        self._timers += 1
        if self._timers <= MAX_TIMERS_WITHOUT_DELAY:
            return now_ns
        self.nudged_ns = now_ns + NS_PER_US
        return self.nudged_ns

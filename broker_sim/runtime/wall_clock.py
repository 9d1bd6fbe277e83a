"""The clock of one machine: its monotonic time is that of all, its wall clock may be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_purgatory import Clock

if TYPE_CHECKING:
    import threading


class MachineClock(Clock):
    """Shows the time of another clock, with a wall clock that can be set."""

    __slots__ = ("_clock", "_shift_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shift_ms = 0

    def shift(self, shift_ms: int) -> None:
        """Let the wall clock jump forward, or back for a negative number; timers do not notice."""
        self._shift_ms += shift_ms

    def now_ms(self) -> int:
        """Return the monotonic time in whole milliseconds."""
        return self._clock.now_ms()

    def wall_clock_ms(self) -> int:
        """Return the milliseconds since 1970 by this machine's wall clock."""
        return self._clock.wall_clock_ms() + self._shift_ms

    def deadline_ms(self, delay_ms: int) -> int:
        """Return the first `now_ms` at which the delay is over."""
        return self._clock.deadline_ms(delay_ms)

    def seconds_until(self, deadline_ms: int) -> float:
        """Return the seconds to that moment."""
        return self._clock.seconds_until(deadline_ms)

    def wait_until(self, condition: threading.Condition, deadline_ms: int) -> bool:
        """Wait as the other clock does."""
        return self._clock.wait_until(condition, deadline_ms)

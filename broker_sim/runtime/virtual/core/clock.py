"""The clock of a virtual loop: integer nanoseconds that only the loop moves; `BusyWait` handles busy waits."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

from broker_sim_purgatory.clock import DEFAULT_WALL_START_MS, Clock

if TYPE_CHECKING:
    import threading

NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_SECOND: Final = 1_000_000_000
MAX_DELAY_S: Final = 1e9
"""Longer delays, also infinite ones, are cut to this: about 31 years."""
MAX_TIMERS_WITHOUT_DELAY: Final = 10
"""Timers without a delay that may run at one moment; each further one takes a microsecond."""
_NOISE_US: Final = 0.001


def delay_to_ns(delay_s: float) -> int:
    """Return the delay in nanoseconds, rounded up to whole microseconds; 0 if it is not positive.

    A positive delay is at least 1 us, because it has to move the time. With a clock of floats,
    `while monotonic() - start < 0.1: await sleep(0.1 - (monotonic() - start))` never ends:
    4.1 - 4.0 is less than 0.1, and 4.1 + 3.6e-16 is 4.1. A remainder of less than 1 ns above a whole
    microsecond is floating-point noise and is not rounded up.
    """
    if delay_s <= 0:
        return 0
    if delay_s > MAX_DELAY_S:  # noqa: PLR1730 - a call of `min` for each timer takes longer
        delay_s = MAX_DELAY_S
    return (ceil(delay_s * 1_000_000 - _NOISE_US) or 1) * NS_PER_US


class LoopClock(Clock):
    """A `purgatory.Clock` that shows the time of a virtual loop; it starts at 0.

    The wall clock starts at `wall_start_ms` and advances with it.
    """

    __slots__ = ("_now_ms", "_wall_start_ms", "now_ns")

    def __init__(self, wall_start_ms: int = DEFAULT_WALL_START_MS) -> None:
        self.now_ns = 0
        """The current time in nanoseconds; only the loop changes it."""
        self._now_ms = 0
        self._wall_start_ms = wall_start_ms

    def move_to_ns(self, now_ns: int) -> None:
        """Set the time; called by the loop."""
        assert now_ns >= self.now_ns, "time never goes back"
        self.now_ns = now_ns
        self._now_ms = now_ns // NS_PER_MS

    def now_ms(self) -> int:
        """Return the loop's time in whole milliseconds, rounded down."""
        return self._now_ms

    def wall_clock_ms(self) -> int:
        """Return the virtual wall clock in milliseconds since 1970."""
        return self._now_ms + self._wall_start_ms

    def wall_clock_ns(self) -> int:
        """Return the virtual wall clock in nanoseconds since 1970."""
        return self.now_ns + self._wall_start_ms * NS_PER_MS

    def deadline_ms(self, delay_ms: int) -> int:
        """Return the `now_ms` at which the delay is over; the current time is rounded up, so that none ends early."""
        return delay_ms - (-self.now_ns // NS_PER_MS)

    def seconds_until(self, deadline_ms: int) -> float:
        """Return the seconds until `deadline_ms`, negative if it has passed."""
        return (deadline_ms * NS_PER_MS - self.now_ns) / NS_PER_SECOND

    def wait_until(self, condition: threading.Condition, deadline_ms: int) -> bool:
        """Return False: virtual time does not pass by waiting."""
        del condition, deadline_ms
        return False


class BusyWait:
    """Advances time for a program that polls the clock without a delay.

    `while monotonic() <= deadline: await wait(tasks, timeout=deadline - monotonic())` ends on a real computer
    because each turn takes some time. aiokafka waits like this for its next auto-commit.
    """

    __slots__ = ("_clock", "_timers", "_timers_ns", "nudged_ns", "progress_ns")

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self._timers = 0
        self._timers_ns = 0
        self.nudged_ns = 0
        """End of the last inserted microsecond."""
        self.progress_ns = 0
        """The last time that the clock reached without an inserted microsecond; `CallbackQueue` sets it."""

    def due_ns(self) -> int:
        """Count a timer without a delay; return when it is due: now, or a microsecond later."""
        now_ns = self._clock.now_ns
        if now_ns not in {self._timers_ns, self.nudged_ns}:
            self._timers = 0
        self._timers_ns = now_ns
        self._timers += 1
        if self._timers <= MAX_TIMERS_WITHOUT_DELAY:
            return now_ns
        self.nudged_ns = now_ns + NS_PER_US
        return self.nudged_ns

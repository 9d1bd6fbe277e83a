"""Time: the one place that reads it, and the one place that waits for it.

Mirrors org.apache.kafka.common.utils.Time (hiResClockMs, milliseconds, waitObject), with one
deliberate difference: a clock also says when a delay that starts now is over (`deadline_ms`),
because adding a delay to a reading that was rounded down ends up to a millisecond too early.
"""

import threading
from abc import abstractmethod
from typing import Final

from broker_sim_purgatory.machine_time import monotonic_ns, wall_clock_ns
from broker_sim_purgatory.native import mypyc_attr

_monotonic_ns: Final = monotonic_ns
_NS_PER_MS = 1_000_000
_MS_PER_SECOND = 1_000
_NS_PER_SECOND = _NS_PER_MS * _MS_PER_SECOND

DEFAULT_WALL_START_MS = 1_700_000_000_000
"""Start of a VirtualClock's wall clock by default, in ms since 1970 (14 November 2023)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """Source of time for timers, purgatories and everything above them.

    Times are integer milliseconds. `now_ms` never goes back. Any thread may read.
    """

    __slots__ = ()

    @abstractmethod
    def now_ms(self) -> int:
        """Monotonic time in whole ms, rounded down; only differences between readings mean something."""
        raise NotImplementedError

    @abstractmethod
    def wall_clock_ms(self) -> int:
        """Milliseconds since 1970, for record timestamps; may jump, so never for deadlines."""
        raise NotImplementedError

    @abstractmethod
    def wait_until(self, condition: threading.Condition, deadline_ms: int) -> bool:
        """Wait on `condition`, whose lock the caller holds, until notified or `deadline_ms`.

        Returns False at once if this clock cannot wait, as in virtual time. True otherwise, also after an early
        wake-up: check the condition again.
        """
        raise NotImplementedError

    def deadline_ms(self, delay_ms: int) -> int:
        """Return the first `now_ms` at which `delay_ms` have truly passed since this call."""
        return self.now_ms() + delay_ms

    def seconds_until(self, deadline_ms: int) -> float:
        """Return the seconds from now to the moment when `now_ms` becomes `deadline_ms`."""
        return (deadline_ms - self.now_ms()) / _MS_PER_SECOND


@mypyc_attr(allow_interpreted_subclasses=True)
class SystemClock(Clock):
    """The time of the machine."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Monotonic milliseconds of the machine, rounded down."""
        return _monotonic_ns() // _NS_PER_MS

    def wall_clock_ms(self) -> int:
        """Milliseconds since 1970 by the machine's wall clock."""
        return wall_clock_ns() // _NS_PER_MS

    def deadline_ms(self, delay_ms: int) -> int:
        """Round the present up, so that no delay ends before its full length has passed."""
        return delay_ms - (-_monotonic_ns() // _NS_PER_MS)

    def seconds_until(self, deadline_ms: int) -> float:
        """Return the seconds to `deadline_ms`, precise to the nanosecond; negative once it has passed."""
        return (deadline_ms * _NS_PER_MS - _monotonic_ns()) / _NS_PER_SECOND

    def wait_until(self, condition: threading.Condition, deadline_ms: int) -> bool:
        """Block the calling thread; see Clock.wait_until. Always returns True."""
        seconds = self.seconds_until(deadline_ms)
        if seconds > 0:
            condition.wait(min(seconds, threading.TIMEOUT_MAX))
        return True


@mypyc_attr(allow_interpreted_subclasses=True)
class VirtualClock(Clock):
    """A clock that stands still until it is moved; nothing ever blocks on it.

    `start_ms` and `wall_start_ms` are its first readings. One thread moves it, any may read.
    """

    __slots__ = ("_now_ms", "_wall_offset_ms")

    def __init__(self, start_ms: int = 0, wall_start_ms: int = DEFAULT_WALL_START_MS) -> None:
        self._now_ms = start_ms
        self._wall_offset_ms = wall_start_ms - start_ms

    def now_ms(self) -> int:
        """Return the time the clock was last moved to, in ms."""
        return self._now_ms

    def deadline_ms(self, delay_ms: int) -> int:
        """Return the time at which a delay that starts now ends."""
        return self._now_ms + delay_ms

    def wall_clock_ms(self) -> int:
        """Return the wall time in ms since 1970; it moves along with `now_ms`."""
        return self._now_ms + self._wall_offset_ms

    def wait_until(self, condition: threading.Condition, deadline_ms: int) -> bool:
        """Return False: virtual time does not pass by waiting."""
        del condition, deadline_ms
        return False

    def advance(self, by_ms: int) -> None:
        """Move forward by `by_ms`; ValueError when negative."""
        self.advance_to(self._now_ms + by_ms)

    def advance_to(self, now_ms: int) -> None:
        """Move to `now_ms`; ValueError if that is in the past: time never goes back."""
        if now_ms < self._now_ms:
            raise ValueError(f"time never goes back: {now_ms} ms is before {self._now_ms} ms")
        self._now_ms = now_ms

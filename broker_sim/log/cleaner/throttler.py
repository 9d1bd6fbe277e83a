"""Holds the cleaner to `log.cleaner.io.max.bytes.per.second`; mirrors `Throttler`.

Deliberate difference: Kafka looks at the rate every 300 ms and then sleeps; here each step is followed
by the pause that its bytes need, so that it holds in virtual time too, where steps take no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim_purgatory import Clock


class Throttler:
    """The rate of all threads of one cleaner together."""

    __slots__ = ("_clock", "_free_ms", "desired_bytes_per_second")

    def __init__(self, desired_bytes_per_second: float, clock: Clock) -> None:
        self.desired_bytes_per_second = desired_bytes_per_second
        self._clock = clock
        self._free_ms = float(clock.now_ms())

    def observe(self, size_bytes: int) -> int:
        """Count bytes that were read or written; return for how many ms to pause after that."""
        now_ms = self._clock.now_ms()
        needed_ms = 1000 * size_bytes / max(self.desired_bytes_per_second, 1.0)
        self._free_ms = max(self._free_ms, now_ms) + needed_ms
        return int(self._free_ms - now_ms)

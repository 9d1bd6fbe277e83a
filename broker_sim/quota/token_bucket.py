"""A bucket of tokens that fills with time; mirrors `TokenBucket` of Kafka's metrics.

It holds as many as come in the whole window. A taker may take more than there are: the number then
is below zero, and the next one waits until it no longer is.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Final

from broker_sim.quota.rate import MS_PER_SECOND

if TYPE_CHECKING:
    from broker_sim.quota.rate import Window

_HALF: Final = 0.5


class TokenBucket:
    """The tokens of one client, full at first."""

    __slots__ = ("_tokens", "_updated_ms", "_window_s")

    def __init__(self, window: Window) -> None:
        self._window_s = window.samples * window.sample_ms / MS_PER_SECOND
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def record(self, tokens: float, per_second: float, now_ms: int) -> None:
        """Take tokens out of the bucket."""
        self._tokens = min(self.measure(per_second, now_ms) - tokens, self._window_s * per_second)

    def measure(self, per_second: float, now_ms: int) -> float:
        """Return the number of tokens at that rate of filling; below zero if too many were taken."""
        burst = self._window_s * per_second
        if self._updated_ms is None:
            self._tokens = burst
        else:
            filled = per_second * (now_ms - self._updated_ms) / MS_PER_SECOND
            self._tokens = min(burst, self._tokens + filled)
        self._updated_ms = now_ms
        return self._tokens

    def throttle_time_ms(self, per_second: float, now_ms: int) -> int:
        """Return after how many ms the number of tokens is back at zero; 0 if it is not below."""
        tokens = self.measure(per_second, now_ms)
        return floor(-tokens / per_second * MS_PER_SECOND + _HALF) if tokens < 0 else 0

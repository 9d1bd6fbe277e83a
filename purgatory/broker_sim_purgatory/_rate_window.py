"""The rate of events per second, over the last minute.

Stands for the Yammer meters behind Kafka's ExpiresPerSec. Deliberate difference: a plain mean
over a sliding window instead of an exponentially weighted one, so a step of virtual time gives
a figure that can be worked out by hand.
"""

from collections import deque

WINDOW_SECONDS = 60


class RateWindow:
    """Counts events by second. Thread rule: the owner's lock covers all calls."""

    __slots__ = ("_seconds", "_start_ms", "total")

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms
        self._seconds: deque[tuple[int, int]] = deque()
        self.total = 0

    def mark(self, now_ms: int, count: int) -> None:
        """Count `count` events at `now_ms`."""
        second = now_ms // 1_000
        self.total += count
        if self._seconds and self._seconds[-1][0] == second:
            count += self._seconds.pop()[1]
        self._seconds.append((second, count))
        self._forget(second)

    def per_second(self, now_ms: int) -> float:
        """Return the mean over the last minute, or since the start if that is less."""
        self._forget(now_ms // 1_000)
        elapsed = min(max((now_ms - self._start_ms) / 1_000, 1.0), float(WINDOW_SECONDS))
        return sum(count for _, count in self._seconds) / elapsed

    def _forget(self, second: int) -> None:
        while self._seconds and self._seconds[0][0] <= second - WINDOW_SECONDS:
            self._seconds.popleft()

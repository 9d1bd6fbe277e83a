"""How far the high watermark of each partition had come on each of its leaders, and when."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

__all__ = ["HighWatermarks"]


class HighWatermarks:
    """What was seen of them during one run, now and then."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)

    def note(self, broker_id: int, partition: int, now_ms: int, high_watermark: int) -> None:
        """Note what a leader's is now."""
        seen = self._seen[broker_id, partition]
        if not seen or seen[-1][1] != high_watermark:
            seen.append((now_ms, high_watermark))

    def at(self, broker_id: int, partition: int, time_ms: int) -> int:
        """Return what was noted last up to that time; -1 if nothing was."""
        seen = self._seen[broker_id, partition]
        place = bisect_right(seen, time_ms, key=lambda each: each[0])
        return seen[place - 1][1] if place else -1

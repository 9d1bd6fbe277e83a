"""Intervals of time, as pairs of begin and end (`now_ms`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Interval = tuple[float, float]


def covered_ms(intervals: Iterable[Interval], since_ms: float, until_ms: float) -> float:
    """Return how many ms between two times lie in at least one interval."""
    covered = 0.0
    reached_ms = since_ms
    for began_ms, ended_ms in sorted(intervals):
        from_ms, to_ms = max(began_ms, reached_ms), min(ended_ms, until_ms)
        if from_ms < to_ms:
            covered += to_ms - from_ms
            reached_ms = to_ms
    return covered

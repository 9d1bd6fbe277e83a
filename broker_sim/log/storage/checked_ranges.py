"""The parts of a file that have been checked: one range for each reader that reads in order."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Final

MOST_RANGES: Final = 64
"""When there are more, the shortest one is forgotten."""


class CheckedRanges:
    """Disjoint ranges of positions, in order; those that touch are one."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts = array("q")
        self._ends = array("q")

    def __len__(self) -> int:
        return len(self._starts)

    def end_of(self, position: int) -> int:
        """Return the end of the range that has the position, the position itself if there is none."""
        at = bisect_right(self._starts, position) - 1
        return max(position, self._ends[at]) if at >= 0 else position

    def add(self, start: int, end: int) -> None:
        """Add a range."""
        starts, ends = self._starts, self._ends
        first, last = bisect_left(ends, start), bisect_right(starts, end)
        if first < last:
            start, end = min(start, starts[first]), max(end, ends[last - 1])
        starts[first:last] = array("q", (start,))
        ends[first:last] = array("q", (end,))
        if len(starts) > MOST_RANGES:
            shortest = min(range(len(starts)), key=lambda at: ends[at] - starts[at])
            del starts[shortest], ends[shortest]

"""The ended transactions whose marker is not below the high watermark; `unreplicatedTxns` in Kafka.

They are few while a log is written. A log that is opened after a kill has all that end behind its last snapshot,
and a follower all of a fetch, so nothing here goes through all of them for one.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import takewhile


class UnreplicatedTransactions:
    """Added in the order of their markers, forgotten in that order; the lowest first offset is at hand."""

    __slots__ = ("_first_offsets", "_markers")

    def __init__(self) -> None:
        self._markers: dict[int, int] = {}
        """First offset -> marker's offset, in the order of the markers."""
        self._first_offsets: list[int] = []
        """A heap; those that are forgotten stay in it until they are the lowest."""

    def __len__(self) -> int:
        return len(self._markers)

    def add(self, first_offset: int, marker_offset: int) -> None:
        """Add the transaction whose marker was just written."""
        self._markers[first_offset] = marker_offset
        heappush(self._first_offsets, first_offset)

    def forget_below(self, offset: int) -> None:
        """Forget those whose marker is before `offset`."""
        below = takewhile(lambda item: item[1] < offset, self._markers.items())
        for first_offset in [first for first, _ in below]:
            del self._markers[first_offset]

    def lowest(self) -> int | None:
        """Return the lowest first offset, None without any."""
        heap = self._first_offsets
        while heap and heap[0] not in self._markers:
            heappop(heap)
        return heap[0] if heap else None

    def clear(self) -> None:
        """Forget all."""
        self._markers.clear()
        self._first_offsets.clear()

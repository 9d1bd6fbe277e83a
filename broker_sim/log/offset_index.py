"""The sparse index of a segment; mirrors how `OffsetIndex` is filled and read.

A batch has an entry when more than `index.interval.bytes` came before it since the last batch with one.
Look-ups need no such index here. It is what is written into the `.index` file of a log on disk, and
says how far a fetch that reads committed records looks for
aborted transactions: up to the first entry after what it has read, else to the end of the segment. So
the list may name transactions that begin after the last record of the answer, as Kafka's does.

Deliberate difference: after a truncation the entries are those of a log that was never longer.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class OffsetIndex:
    """The entries of one segment, computed when they are needed."""

    __slots__ = ("_batches", "interval_bytes")

    def __init__(self, interval_bytes: int) -> None:
        self.interval_bytes = interval_bytes
        self._batches = array("q")

    def first_at_or_after(self, position: int, positions: Sequence[int]) -> int | None:
        """Return the number of the first batch with an entry at or after `position`, or None.

        `positions` are those of the segment: the bytes of the log before each batch, and its end.
        """
        batches = self._batches
        self._fill(position, positions)
        slot = bisect_left(batches, position, key=lambda batch: positions[batch])
        return batches[slot] if slot < len(batches) else None

    def batches(self, positions: Sequence[int]) -> Sequence[int]:
        """Return the numbers of all batches with an entry; for reading only."""
        self._fill(positions[-1], positions)
        return self._batches

    def _fill(self, position: int, positions: Sequence[int]) -> None:
        """Find the entries up to the first one at or after `position`."""
        batches = self._batches
        last = batches[-1] if batches else 0
        while last == 0 or positions[last] < position:
            following = bisect_right(positions, positions[last] + self.interval_bytes, last + 1)
            if following >= len(positions) - 1:
                break
            batches.append(following)
            last = following

    def truncate_to(self, batch: int) -> None:
        """Drop the entries of that batch and all later ones."""
        del self._batches[bisect_left(self._batches, batch) :]

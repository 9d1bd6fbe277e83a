"""The batches of a share partition in the order of their offsets; stands for Java's `ConcurrentSkipListMap`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.share.partition.in_flight_batch import InFlightBatch


class InFlightMap:
    """Batches by their first offsets. They come at the end and go from the start, as a rule."""

    __slots__ = ("_batches", "_first_offsets")

    def __init__(self) -> None:
        self._first_offsets: list[int] = []
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    @property
    def first(self) -> InFlightBatch:
        """The first batch; there must be one."""
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        """The last batch; there must be one."""
        return self._batches[-1]

    def put(self, batch: InFlightBatch) -> None:
        """Add a batch, in the place of one that begins at the same offset."""
        first_offset = batch.first_offset
        index = bisect_left(self._first_offsets, first_offset)
        if index < len(self._batches) and self._first_offsets[index] == first_offset:
            self._batches[index] = batch
        else:
            self._first_offsets.insert(index, first_offset)
            self._batches.insert(index, batch)

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that begins at the offset or before it."""
        index = bisect_right(self._first_offsets, offset)
        return self._batches[index - 1] if index else None

    def higher(self, offset: int) -> InFlightBatch | None:
        """Return the first batch that begins after the offset."""
        index = bisect_right(self._first_offsets, offset)
        return self._batches[index] if index < len(self._batches) else None

    def between(self, first_offset: int, last_offset: int) -> Sequence[InFlightBatch]:
        """Return the batches that begin in that range, both ends included."""
        start = bisect_left(self._first_offsets, first_offset)
        return self._batches[start : bisect_right(self._first_offsets, last_offset)]

    def remove_before(self, offset: int) -> None:
        """Forget the batches that begin before the offset."""
        count = bisect_left(self._first_offsets, offset)
        del self._first_offsets[:count], self._batches[:count]

    def clear(self) -> None:
        """Forget all."""
        self._first_offsets.clear()
        self._batches.clear()

"""Look-up of a segment's batches in sorted arrays with one entry per batch, and their sparse index.

    end_offsets      offset after the batch          -> the batch that holds an offset
    positions        bytes of the segment before the batch; one more for the end
    max_timestamps   largest timestamp so far        -> the first batch at or after a time

A look-up is a bisection of an array. It serves all batches in memory, and those of a file that is being written or
was scanned; `SealedBatches` serves the others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.log.storage.index_files import SegmentIndexes
from broker_sim.protocol.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.log.transaction_index import AbortedTxn


_NONE: Final = array("q")
"""The index of all segments without an entry, which is never changed: most segments in memory never need theirs."""


class BatchPlace(NamedTuple):
    """The place of a batch in its file, with fields of its header."""

    position: int
    end: int
    """The position after the batch."""
    last_offset: int
    max_timestamp: int


class OffsetIndex:
    """The sparse index of one segment, computed when it is needed; mirrors how `OffsetIndex` is filled and read.

    A batch has an entry if more than `index.interval.bytes` precede it since the last batch with one. Look-ups in
    memory do not need it. It is written to the `.index` file of a log on disk, and it bounds the search of a
    read-committed fetch for aborted transactions: up to the first entry after the records read, otherwise to the
    end of the segment. So the list may have transactions that begin after the last record, as in Kafka.

    Deliberate difference: after a truncation the entries are those of a log that was never longer.
    """

    __slots__ = ("_batches", "interval_bytes")

    def __init__(self, interval_bytes: int) -> None:
        self.interval_bytes = interval_bytes
        self._batches = _NONE

    def first_at_or_after(self, position: int, positions: Sequence[int]) -> int | None:
        """Return the index of the first batch with an entry at or after `position`, or None.

        `positions` are the segment's: the bytes before each batch, and the end.
        """
        self._fill(position, positions)
        batches = self._batches
        slot = bisect_left(batches, position, key=lambda batch: positions[batch])
        return batches[slot] if slot < len(batches) else None

    def batches(self, positions: Sequence[int]) -> Sequence[int]:
        """Return the indexes of all batches with an entry; read-only."""
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
            if batches is _NONE:
                self._batches = batches = array("q")
            batches.append(following)
            last = following

    def truncate_to(self, batch: int) -> None:
        """Drop the entries of that batch and all later ones."""
        del self._batches[bisect_left(self._batches, batch) :]


class BatchEntries:
    """The entries of a segment's batches from one batch on: a `BatchLookup`."""

    __slots__ = (
        "_max_timestamp_before",
        "end_offset",
        "end_offsets",
        "index",
        "max_timestamp",
        "max_timestamps",
        "positions",
        "size_bytes",
        "start_offset",
    )

    def __init__(
        self, start_offset: int, index_interval_bytes: int, start_position: int = 0, max_timestamp: int = NO_TIMESTAMP
    ) -> None:
        """Begin without entries, after batches that end at this offset and position."""
        self.start_offset = start_offset
        """The base offset of the first batch, present or future."""
        self.end_offset = start_offset
        """The offset after the last batch."""
        self.size_bytes = start_position
        """The bytes of the segment up to the end of the last batch."""
        self.max_timestamp = max_timestamp
        """The largest timestamp, -1 if there is none."""
        self._max_timestamp_before = max_timestamp
        self.end_offsets = array("q")
        self.positions = array("q", (start_position,))
        self.max_timestamps = array("q")
        self.index = OffsetIndex(index_interval_bytes)
        """The sparse index of these batches."""

    def __len__(self) -> int:
        return len(self.end_offsets)

    def add(self, end_offset: int, size_bytes: int, max_timestamp: int) -> None:
        """Add an entry; `max_timestamp` is the batch's own."""
        if max_timestamp > self.max_timestamp:  # noqa: PLR1730 - max() is slower
            self.max_timestamp = max_timestamp
        self.end_offset = end_offset
        self.size_bytes += size_bytes
        self.end_offsets.append(end_offset)
        self.positions.append(self.size_bytes)
        self.max_timestamps.append(self.max_timestamp)

    def number_of(self, offset: int) -> int:
        """Return the index of the batch that holds `offset` or follows it; the number of batches if there is none."""
        return bisect_right(self.end_offsets, offset)

    def position(self, offset: int) -> int:
        """Return the number of bytes before the batch that holds `offset` or follows it."""
        return self.positions[bisect_right(self.end_offsets, offset)]

    def first_since(self, timestamp: int, offset: int) -> int:
        """Return the offset from which batches may be at or after `timestamp`, `offset` at least."""
        older = bisect_left(self.max_timestamps, timestamp)
        return max(offset, self.end_offsets[older - 1]) if older else offset

    def extend(self, behind: BatchEntries) -> None:
        """Add the entries of the batches that follow these."""
        self.end_offsets.extend(behind.end_offsets)
        self.positions.extend(behind.positions[1:])
        self.max_timestamps.extend(behind.max_timestamps)
        self._note_end()

    def truncate_to(self, keep: int) -> None:
        """Keep only the first `keep` entries."""
        del self.end_offsets[keep:], self.max_timestamps[keep:], self.positions[keep + 1 :]
        self.index.truncate_to(keep)
        self._note_end()

    def _note_end(self) -> None:
        self.size_bytes = self.positions[-1]
        is_empty = not self.end_offsets
        self.end_offset = self.start_offset if is_empty else self.end_offsets[-1]
        self.max_timestamp = self._max_timestamp_before if is_empty else self.max_timestamps[-1]

    # -- a BatchLookup --------------------------------------------------------------------------

    def translate_offset(self, offset: int) -> BatchPlace | None:
        """Return the place of the batch that holds `offset` or follows it."""
        return next(self.places_from(offset), None)

    def places_from(self, offset: int) -> Iterator[BatchPlace]:
        """Yield the batches from the one that holds `offset` or follows it, including those added meanwhile."""
        end_offsets, positions, timestamps = self.end_offsets, self.positions, self.max_timestamps
        while (number := bisect_right(end_offsets, offset)) < len(end_offsets):
            offset, start = end_offsets[number], positions[number]
            yield BatchPlace(start, positions[number + 1], offset - 1, timestamps[number])

    def places_since(self, timestamp: int, offset: int) -> Iterator[BatchPlace]:
        """Yield the batches at or after `offset`, from the first one that may have a record since `timestamp`."""
        return self.places_from(self.first_since(timestamp, offset))

    def upper_bound_offset(self, position: int) -> int | None:
        """Return the last offset of the first batch with an index entry at or after the position."""
        batch = self.index.first_at_or_after(position, self.positions)
        return None if batch is None else self.end_offsets[batch] - 1

    def check(self, position: int, end: int) -> None:
        """Do nothing: every batch with an entry has been verified."""

    # -- the index files ------------------------------------------------------------------------

    def indexed(self) -> Sequence[int]:
        """Return the indexes of the batches with an entry in the offset index."""
        return self.index.batches(self.positions)

    def indexes(self, aborted: Sequence[AbortedTxn]) -> SegmentIndexes:
        """Return the entries of the index files; `aborted` are the segment's transactions.

        The largest timestamp has an entry too, as in a segment that Kafka has rolled.
        """
        end_offsets, max_timestamps = self.end_offsets, self.max_timestamps
        offsets, times = [], []
        newest = NO_TIMESTAMP
        for batch in self.indexed():
            offsets.append((end_offsets[batch] - 1, self.positions[batch]))
            if max_timestamps[batch] > newest:
                newest = max_timestamps[batch]
                times.append((newest, end_offsets[bisect_left(max_timestamps, newest)] - 1))
        if max_timestamps and max_timestamps[-1] > newest:
            newest = max_timestamps[-1]
            times.append((newest, end_offsets[bisect_left(max_timestamps, newest)] - 1))
        return SegmentIndexes(offsets, times, aborted)

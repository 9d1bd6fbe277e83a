"""The batches that were read for a share fetch."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.protocol.record_batch import batch_size_at, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.log import AbortedTxn
    from broker_sim.protocol.record_batch import BatchHeader


class AcquiredRange(NamedTuple):
    """Adjacent records that a member has acquired; `AcquiredRecords` of the response."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def record_count(self) -> int:
        """The number of its offsets."""
        return self.last_offset - self.first_offset + 1


class FetchedBatch:
    """A whole batch of the log."""

    __slots__ = ("data", "header")

    def __init__(self, header: BatchHeader, data: memoryview) -> None:
        self.header = header
        self.data = data

    @property
    def base_offset(self) -> int:
        """The offset of its first record."""
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        """The offset of its last record."""
        return self.header.last_offset


class FetchedRecords:
    """The records that were read of one partition; a last batch that is cut off does not count.

    A fetch reads far more than a member may acquire, so only batches up to that limit are parsed. Deliberate
    difference: Kafka parses all of them for the last offset, with the same outcome.
    """

    __slots__ = ("_has_more", "aborted_transactions", "batches", "records")

    def __init__(
        self,
        records: Sequence[bytes | memoryview],
        aborted_transactions: Sequence[AbortedTxn] | None = None,
        *,
        last_offset: int | None = None,
    ) -> None:
        """Parse the batches in the pieces of a log, up to the one with `last_offset`.

        Raises ApiError for pieces that are no batches.
        """
        self.records = records
        self.aborted_transactions = aborted_transactions or ()
        """The aborted transactions that the batches may belong to; empty unless only committed records are read."""
        self.batches: list[FetchedBatch] = []
        self._has_more = False
        for batch in _batches(records):
            if self.batches and last_offset is not None and self.batches[-1].last_offset >= last_offset:
                self._has_more = True
                break
            self.batches.append(batch)

    def last_offset_of_batch_with(self, offset: int) -> int:
        """Return the last offset of the batch with the offset; the offset itself without such a batch."""
        index = self.index_of(offset)
        return offset if index < 0 else max(self.batches[index].last_offset, offset)

    def index_of(self, offset: int) -> int:
        """Return the index of the last batch that begins at the offset or before it; -1 without one."""
        return bisect_right(self.batches, offset, key=_base_offset) - 1

    def slice(self, first_offset: int, last_offset: int) -> Sequence[bytes | memoryview]:
        """Return the batches with these records, which must have been read."""
        if len(self.batches) < 2 and not self._has_more:
            return self.records
        start = max(self.index_of(first_offset), 0)
        end = self.index_of(last_offset) + 1
        return [batch.data for batch in self.batches[start:end]]


def _base_offset(batch: FetchedBatch) -> int:
    return batch.base_offset


def _batches(records: Sequence[bytes | memoryview]) -> Iterator[FetchedBatch]:
    """Yield the whole batches of the pieces. Raises ApiError."""
    for piece in records:
        view = memoryview(piece)
        position = 0
        while (size := batch_size_at(view, position)) is not None:
            yield FetchedBatch(parse_header(view, position), view[position : position + size])
            position += size

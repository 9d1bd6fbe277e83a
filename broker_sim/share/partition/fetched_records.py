"""The batches of records that were read for a share fetch."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.protocol.record_batch import batch_size_at, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.log import AbortedTxn
    from broker_sim.protocol.record_batch import BatchHeader


class AcquiredRange(NamedTuple):
    """Records next to each other that a member has acquired; `AcquiredRecords` of the response."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def record_count(self) -> int:
        """The number of its offsets."""
        return self.last_offset - self.first_offset + 1


class FetchedBatch:
    """A whole batch, as it is in the log."""

    __slots__ = ("data", "header")

    def __init__(self, header: BatchHeader, data: memoryview) -> None:
        self.header = header
        self.data = data

    @property
    def base_offset(self) -> int:
        """Where it begins."""
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        """The offset of its last record."""
        return self.header.last_offset


class FetchedRecords:
    """What was read of one partition; the last batch may be cut, and then does not count.

    A fetch reads far more than a member wants, so batches are looked for only as far as they can be acquired.
    Deliberate difference: Kafka goes over all of them for the last offset, with the same outcome.
    """

    __slots__ = ("_has_more", "aborted_transactions", "batches", "records")

    def __init__(
        self,
        records: Sequence[bytes | memoryview],
        aborted_transactions: Sequence[AbortedTxn] | None = None,
        *,
        last_offset: int | None = None,
    ) -> None:
        """Look for the batches in the pieces of a log, up to the one with `last_offset`.

        Raises ApiError where there are none.
        """
        self.records = records
        self.aborted_transactions = aborted_transactions or ()
        """Those that the batches may be of; none unless only committed records are read."""
        self.batches: list[FetchedBatch] = []
        self._has_more = False
        for batch in _batches(records):
            if self.batches and last_offset is not None and self.batches[-1].last_offset >= last_offset:
                self._has_more = True
                break
            self.batches.append(batch)

    def last_offset_of_batch_with(self, offset: int) -> int:
        """Return where the batch ends that has the offset; the offset itself without one."""
        index = self.index_of(offset)
        return offset if index < 0 else max(self.batches[index].last_offset, offset)

    def index_of(self, offset: int) -> int:
        """Return which batch is the last one that begins at the offset or before it; -1 without one."""
        return bisect_right(self.batches, offset, key=_base_offset) - 1

    def slice(self, first_offset: int, last_offset: int) -> Sequence[bytes | memoryview]:
        """Return the batches that have these records, which are among those that were read."""
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

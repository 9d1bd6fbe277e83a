"""Batches read from the log for a share fetch, and the ranges acquired from them."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.protocol.record_batch import batch_size_at, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.log import AbortedTxn
    from broker_sim.protocol.record_batch import BatchHeader


class AcquiredRange(NamedTuple):
    """A range of records that a member has acquired; `AcquiredRecords` in the response."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def record_count(self) -> int:
        """Number of offsets in the range."""
        return self.last_offset - self.first_offset + 1


class FetchedBatch:
    """A complete batch of the log."""

    __slots__ = ("data", "header")

    def __init__(self, header: BatchHeader, data: memoryview) -> None:
        self.header = header
        self.data = data

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.header.last_offset


class FetchedRecords:
    """The records read from one partition, without a truncated last batch.

    A fetch reads far more than a member may acquire, so only batches up to that limit are parsed. Deliberate
    difference: Kafka parses all of them to find the last offset, with the same outcome.
    """

    __slots__ = ("_has_more", "aborted_transactions", "batches", "records")

    def __init__(
        self,
        records: Sequence[bytes | memoryview],
        aborted_transactions: Sequence[AbortedTxn] | None = None,
        *,
        last_offset: int | None = None,
    ) -> None:
        """Parse the batches in `records`, up to the one with `last_offset`.

        Raises ApiError if they cannot be parsed.
        """
        self.records = records
        self.aborted_transactions = aborted_transactions or ()
        """Aborted transactions in the range of the batches; empty unless reading committed records."""
        self.batches: list[FetchedBatch] = []
        self._has_more = False
        for batch in _batches(records):
            if self.batches and last_offset is not None and self.batches[-1].last_offset >= last_offset:
                self._has_more = True
                break
            self.batches.append(batch)

    def last_offset_of_batch_with(self, offset: int) -> int:
        """Return the last offset of the batch that contains the offset; the offset itself if there is none."""
        index = self.index_of(offset)
        return offset if index < 0 else max(self.batches[index].last_offset, offset)

    def index_of(self, offset: int) -> int:
        """Return the index of the last batch that begins at or before the offset; -1 if there is none."""
        return bisect_right(self.batches, offset, key=_base_offset) - 1

    def slice(self, first_offset: int, last_offset: int) -> Sequence[bytes | memoryview]:
        """Return the data of the batches that contain these offsets, which must have been parsed."""
        if len(self.batches) < 2 and not self._has_more:
            return self.records
        start = max(self.index_of(first_offset), 0)
        end = self.index_of(last_offset) + 1
        return [batch.data for batch in self.batches[start:end]]


def _base_offset(batch: FetchedBatch) -> int:
    return batch.base_offset


def _batches(records: Sequence[bytes | memoryview]) -> Iterator[FetchedBatch]:
    """Yield the complete batches in `records`. Raises ApiError."""
    for piece in records:
        view = memoryview(piece)
        position = 0
        while (size := batch_size_at(view, position)) is not None:
            yield FetchedBatch(parse_header(view, position), view[position : position + size])
            position += size

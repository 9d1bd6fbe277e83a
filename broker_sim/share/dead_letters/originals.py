"""Reads the records that dead letters copy from the log; mirrors `ShareGroupDLQRecordFetcher`.

A round reads at most as many bytes as the dead-letter topic accepts in one batch. The dead letter of a record that is
larger by itself, or cannot be read, has no key and value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import parse_header, split_batches
from broker_sim.protocol.records import iter_records, record_size
from broker_sim.replica import FetchIsolation, FetchParams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.metadata.topic_partition import TopicIdPartition
    from broker_sim.protocol.records import Record
    from broker_sim.replica import FetchPartitionData

    ReadLog = Callable[
        [FetchParams, Mapping[TopicIdPartition, int], Mapping[TopicIdPartition, int]],
        Mapping[TopicIdPartition, FetchPartitionData],
    ]
    """`read_log(params, offsets, max_bytes)` reads each partition from its offset on."""

MAX_FETCH_BYTES: Final = 1 << 20
"""Maximum size of one log read in bytes."""


class Originals:
    """The original records of one round, by offset."""

    __slots__ = ("_end_offset", "_is_full", "_max_bytes", "_size_bytes", "last_offset", "records")

    def __init__(self, first_offset: int, last_offset: int, max_bytes: int) -> None:
        self.records: dict[int, Record] = {}
        self.last_offset = first_offset - 1
        """Last offset of the round; later records are read in the next one."""
        self._end_offset = last_offset
        self._max_bytes = max_bytes
        self._size_bytes = 0
        self._is_full = False

    def read(self, read_log: ReadLog, partition: TopicIdPartition) -> None:
        """Read records until the end offset or until the round is full; unreadable ones are left out."""
        params = FetchParams(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=MAX_FETCH_BYTES,
            isolation=FetchIsolation.HIGH_WATERMARK,
            has_client_metadata=False,
        )
        offset = self.last_offset + 1
        while offset <= self._end_offset and not self._is_done:
            data = read_log(params, {partition: offset}, {partition: MAX_FETCH_BYTES})[partition]
            batches = [] if data.error_code else split_batches(b"".join(data.records))
            next_offset = offset
            for batch in batches:
                if not self._is_done:
                    next_offset = self._take_batch(batch, next_offset)
            if next_offset <= offset:
                if not self._is_full:
                    self.last_offset = self._end_offset
                return
            offset = next_offset

    @property
    def _is_done(self) -> bool:
        return self._is_full or self._size_bytes >= self._max_bytes

    def _take_batch(self, batch: memoryview, offset: int) -> int:
        """Add the batch's records from the offset on; return the next offset."""
        header = parse_header(batch)
        is_compressed = header.codec is not CompressionCodec.NONE
        try:
            records = list(iter_records(batch, self._max_bytes)) if is_compressed else iter_records(batch)
        except ApiError:  # decompressed it exceeds a whole round
            self.last_offset = max(self.last_offset, min(header.last_offset, self._end_offset))
            return max(offset, self.last_offset + 1)
        for record in records:
            if record.offset < offset:
                continue
            if record.offset > self._end_offset:
                break
            size = record_size(record, header)
            if size <= self._max_bytes or is_compressed:
                if self._size_bytes + size > self._max_bytes:
                    self._is_full = True
                    break
                self.records[record.offset] = record
                self._size_bytes += size
            offset = record.offset + 1
            self.last_offset = max(self.last_offset, record.offset)
        return offset

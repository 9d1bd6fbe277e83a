"""One cleaning of a log; mirrors `Cleaner`.

    1  map       the keys of the dirty part, each with the offset of its last record
    2  group     the segments from the log's start on, small ones together
    3  copy      the retained records of each group into a new segment, which replaces the group

The work is a generator: it yields after each batch, and within large ones, so that its caller decides
how long it runs at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log.cleaner.batch_filter import (
    RECORDS_PER_UNIT,
    BatchFilter,
    CleanedTransactionMetadata,
    CleanerStats,
    Work,
)
from broker_sim.log.segment import LogSegment
from broker_sim.log.storage import MAX_RELATIVE_OFFSET
from broker_sim.protocol.record_batch import parse_header, verify_crc
from broker_sim.protocol.records import iter_records

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from broker_sim.log.cleaner.batch_filter import OffsetMap
    from broker_sim.log.cleaner.manager import LogToClean
    from broker_sim.log.partition_log import PartitionLog
    from broker_sim.protocol.record_batch import BatchHeader


class LogCleaningAbortedError(Exception):
    """The segments were deleted during their cleaning."""


class Cleaner:
    """Cleans one log once."""

    def __init__(self, cleanable: LogToClean, offsets: OffsetMap) -> None:
        """`offsets` is an empty map, sized by `log.cleaner.dedupe.buffer.size`."""
        self.cleanable = cleanable
        self.stats = CleanerStats()
        self._log = cleanable.log
        self._offsets = offsets
        self._transactions = CleanedTransactionMetadata()

    def clean(self) -> Generator[Work, None, int]:
        """Clean the log; return the first offset that is still dirty.

        Raises `LogCleaningAbortedError`, and any error of a batch that cannot be decoded. A batch with a wrong
        CRC raises CORRUPT_MESSAGE: a copy would get a correct one.
        """
        clock, stats, log = self._log.clock, self.stats, self._log
        stats.start_ms = clock.now_ms()
        yield from self._build_offset_map()
        stats.map_complete_ms = clock.now_ms()
        end_offset = self._offsets.latest_offset + 1
        batches = BatchFilter(log, self._offsets, self._transactions, self.cleanable.first_uncleanable_offset, stats)
        segments = [segment for segment in log.segments if segment.base_offset < end_offset]
        for group in group_segments_by_size(
            segments, log.config.segment_size_bytes, self.cleanable.first_uncleanable_offset
        ):
            yield from self._clean_segments(group, batches)
        stats.buffer_utilization = self._offsets.utilization
        stats.end_ms = clock.now_ms()
        return end_offset

    # -- the map --------------------------------------------------------------------------------

    def _build_offset_map(self) -> Generator[Work, None, None]:
        start, end = self.cleanable.first_dirty_offset, self.cleanable.first_uncleanable_offset
        dirty = self.cleanable.dirty_segments()
        ends = [segment.base_offset for segment in dirty[1:]] + [end]
        transactions = CleanedTransactionMetadata()
        transactions.add_aborted(self._log.producer_state.transaction_index.collect(start, end))
        for segment, segment_end in zip(dirty, ends, strict=True):
            for header, batch in segment.batches_from(start):
                has_room = yield from self._map_batch(header, batch, transactions)
                self._check_not_deleted(segment)
                if not has_room:
                    return
            self._offsets.latest_offset = segment_end - 1

    def _map_batch(
        self, header: BatchHeader, batch: bytes, transactions: CleanedTransactionMetadata
    ) -> Generator[Work, None, bool]:
        """Put the keys of a batch into the map; return False if the map is full."""
        verify_crc(memoryview(batch), header)
        offsets, start = self._offsets, self.cleanable.first_dirty_offset
        self.stats.map_bytes_read += header.size_bytes
        self.stats.map_messages_read += header.records_count
        if header.is_control:
            transactions.on_control_batch_read(header, batch)
        elif not transactions.on_batch_read(header):
            for number, record in enumerate(iter_records(batch), 1):
                if record.key is not None and record.offset >= start:
                    if offsets.is_full:
                        return False
                    offsets.put(record.key, record.offset)
                if number % RECORDS_PER_UNIT == 0:
                    yield Work(RECORDS_PER_UNIT, 0)
        if header.last_offset >= start:
            offsets.latest_offset = header.last_offset
        yield Work(1, header.size_bytes)
        return True

    # -- the copy -------------------------------------------------------------------------------

    def _clean_segments(self, group: Sequence[LogSegment], batches: BatchFilter) -> Generator[Work, None, None]:
        """Replace the segments by one with their retained records."""
        log = self._log
        cleaned = _new_cleaned_segment(log, group)
        ends = [segment.base_offset for segment in group[1:]] + [group[-1].end_offset]
        for segment, end_offset in zip(group, ends, strict=True):
            self._transactions.add_aborted(
                log.producer_state.transaction_index.collect(segment.base_offset, end_offset)
            )
            for header, batch in segment.batches_from(segment.base_offset):
                verify_crc(memoryview(batch), header)
                self.stats.bytes_read += header.size_bytes
                retained = yield from batches.filter(header, batch)
                retained_bytes = 0
                if retained is not None:
                    retained_bytes = len(retained)
                    self.stats.bytes_written += retained_bytes
                    max_timestamp = parse_header(retained).max_timestamp
                    cleaned.append(retained, header.last_offset + 1, max_timestamp, segment.last_modified_ms)
                yield Work(1, header.size_bytes + retained_bytes)
                self._check_not_deleted(group[0])
        cleaned.last_modified_ms = group[-1].last_modified_ms
        log.producer_state.transaction_index.replace(
            group[0].base_offset, group[-1].end_offset, self._transactions.take_remaining()
        )
        log.replace_segments(cleaned, group)

    def _check_not_deleted(self, segment: LogSegment) -> None:
        """Raise LogCleaningAbortedError if the segment is gone; they are deleted from the oldest on."""
        if segment.base_offset < self._log.segments[0].base_offset:
            raise LogCleaningAbortedError


def group_segments_by_size(
    segments: Sequence[LogSegment], max_bytes: int, first_uncleanable_offset: int
) -> list[list[LogSegment]]:
    """Return the segments in groups that each fit into one segment; no segment is split."""
    groups: list[list[LogSegment]] = []
    group_bytes = 0
    for index, segment in enumerate(segments):
        following = segments[index + 1] if index + 1 < len(segments) else None
        end_offset = first_uncleanable_offset if following is None else following.base_offset
        fits = (
            groups
            and group_bytes + segment.size_bytes <= max_bytes
            and (not segment.size_bytes or end_offset - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        )
        if fits:
            groups[-1].append(segment)
            group_bytes += segment.size_bytes
        else:
            groups.append([segment])
            group_bytes = segment.size_bytes
    return groups


def _new_cleaned_segment(log: PartitionLog, group: Sequence[LogSegment]) -> LogSegment:
    """Return an empty segment for the retained records; mirrors `UnifiedLog.createNewCleanedSegment`."""
    first = group[0]
    return LogSegment.in_memory(
        first.base_offset, first.start_position, log.clock.wall_clock_ms(), log.config.index_interval_bytes
    )

"""A segment of the log and its indexes; mirrors `LogSegment` with its offset and time index.

A segment has its batches where `LogStorage` keeps them, and three sorted arrays with one entry per
batch:

    end_offsets      offset after the batch          -> which batch holds an offset
    positions        bytes of the log before the batch; one more entry for the segment's end (a cleaned
                     segment ends before the next one begins)
    max_timestamps   largest timestamp so far        -> first batch at or after a time

Every look-up is a bisection of an array and reads no record.

A closed segment on disk has an entry for a span of several batches, see `segment_arrays`; a look-up within one
reads the headers of its batches.

Deliberate difference: Kafka's indexes are sparse (one entry per 4 KB); it scans from there. Where that
can be seen, and in the files of a log on disk, `OffsetIndex` says where the entries are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.append_info import EMPTY_FETCH, FetchDataInfo
from broker_sim.log.memory import BATCH_OVERHEAD_BYTES
from broker_sim.log.offset_index import OffsetIndex
from broker_sim.log.segment_arrays import index_entries, join_batches, open_spans
from broker_sim.log.storage import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    FileBatches,
    LogStorage,
    SegmentContent,
    SegmentIndexes,
)
from broker_sim.protocol.record_batch import NO_TIMESTAMP, BatchHeader, parse_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.log.append_info import LogAppendInfo
    from broker_sim.log.storage import Batches
    from broker_sim.log.transaction_index import AbortedTxn

__all__ = ["LogSegment"]

_MAX_RELATIVE_OFFSET = 2**31 - 1


class LogSegment:
    """Batches from `base_offset` on."""

    __slots__ = (
        "_batches",
        "_end_offsets",
        "_index",
        "_index_interval_bytes",
        "_max_timestamps",
        "_positions",
        "_released",
        "_rolling_based_timestamp",
        "_spans",
        "_unread",
        "base_offset",
        "created_ms",
        "last_modified_ms",
    )

    def __init__(
        self,
        base_offset: int,
        position: int,
        now_ms: int,
        index_interval_bytes: int,
        storage: LogStorage | None = None,
    ) -> None:
        """Make an empty segment, in memory unless there is a `storage`."""
        self.base_offset = base_offset
        self.created_ms = now_ms
        self.last_modified_ms = now_ms
        self._end_offsets = array("q")
        self._positions = array("q", (position,))
        in_memory: list[bytes] = []
        self._batches: Batches = (
            in_memory if storage is None else storage.create_segment(base_offset, self._positions)
        )
        self._max_timestamps = array("q")
        self._index_interval_bytes = index_interval_bytes
        self._index = OffsetIndex(index_interval_bytes)
        self._rolling_based_timestamp = NO_TIMESTAMP
        self._released = 0
        self._unread: Callable[[], SegmentContent] | None = None
        """Looks at the batches that the log was opened with; until then the arrays have them as one."""
        self._spans = 0
        """How many of the first entries may stand for several batches."""

    @classmethod
    def of_content(cls, content: SegmentContent, index_interval_bytes: int) -> LogSegment:
        """Return the segment of batches that are kept already."""
        segment = cls(content.base_offset, 0, content.modified_ms, index_interval_bytes)
        segment._batches = content.batches
        segment._end_offsets = content.end_offsets
        segment._positions = content.positions
        segment._max_timestamps = content.max_timestamps
        segment._rolling_based_timestamp = content.first_timestamp
        segment._unread = content.load
        return segment

    def _read_up_to(self, offset: int) -> None:
        """Look at the batches that the segment was opened without, if `offset` is before their end."""
        unread = self._unread
        if unread is None or offset >= self._end_offsets[0]:
            return
        content = unread()
        self._unread = None
        index = OffsetIndex(self._index_interval_bytes)
        join_batches(content.end_offsets, content.positions, content.max_timestamps, index)
        open_spans(0, [content], self._end_offsets, self._positions, self._max_timestamps)
        self._spans = len(content.end_offsets)

    def _batches_within(self, span: int) -> SegmentContent:
        """Look at the batches of a span. Raises KAFKA_STORAGE_ERROR if they are not there any more."""
        batches = self._batches
        assert isinstance(batches, FileBatches)
        start_offset = self._end_offsets[span - 1] if span else self.base_offset
        return batches.within(span, start_offset, self._end_offsets[span])

    def _look_at_all(self) -> None:
        """Make an entry of each batch."""
        self._read_up_to(self.base_offset)
        if self._spans:
            spans = [self._batches_within(span) for span in range(self._spans)]
            open_spans(0, spans, self._end_offsets, self._positions, self._max_timestamps)
            self._spans = 0

    def join_batches(self) -> None:
        """Keep few entries in memory, of a segment on disk to which nothing is appended any more."""
        is_joined = self._spans == len(self._end_offsets)
        if is_joined or self._unread is not None or not isinstance(self._batches, FileBatches):
            return
        self._look_at_all()
        join_batches(self._end_offsets, self._positions, self._max_timestamps, self._index)
        self._spans = len(self._end_offsets)
        self._index = OffsetIndex(self._index_interval_bytes)

    def __len__(self) -> int:
        """Return how many entries are kept in memory: one for each batch, or for each span."""
        return len(self._end_offsets)

    @property
    def size_bytes(self) -> int:
        """The bytes of all batches."""
        return self._positions[-1] - self._positions[0]

    @property
    def memory_bytes(self) -> int:
        """The bytes that the segment keeps in memory, with what its batches take beside them."""
        kept_bytes = self._positions[-1] - self._positions[self._released]
        return kept_bytes + len(self._batches) * BATCH_OVERHEAD_BYTES

    @property
    def start_position(self) -> int:
        """The bytes of the log before this segment."""
        return self._positions[0]

    @property
    def end_position(self) -> int:
        """The bytes of the log up to the end of this segment."""
        return self._positions[-1]

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any batch, -1 if there is none."""
        return self._max_timestamps[-1] if self._max_timestamps else NO_TIMESTAMP

    @property
    def largest_timestamp(self) -> int:
        """The time by which retention goes: the largest timestamp, or else that of the last append."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self.last_modified_ms

    @property
    def first_batch_timestamp(self) -> int:
        """The largest timestamp of the first batch, -1 if there is none."""
        return self._rolling_based_timestamp

    def append(self, batch: bytes, end_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Add one batch whose last record is at `end_offset - 1`."""
        positions, timestamps = self._positions, self._max_timestamps
        if not timestamps:
            self._rolling_based_timestamp = max_timestamp
        elif timestamps[-1] > max_timestamp:
            max_timestamp = timestamps[-1]
        self._batches.append(batch)
        self._end_offsets.append(end_offset)
        positions.append(positions[-1] + len(batch))
        timestamps.append(max_timestamp)
        self.last_modified_ms = now_ms

    def replace_in(self, storage: LogStorage, replaced: Sequence[int]) -> None:
        """Let `storage` keep this segment, filled in memory, where those of the base offsets were."""
        self._batches = storage.replace_segments(
            replaced, self._batches[:], self._positions, self.last_modified_ms
        )

    def should_roll(
        self, append: LogAppendInfo, now_ms: int, max_bytes: int, max_age_ms: int
    ) -> bool:
        """Whether the append needs a new segment: because of size, offset range, or age.

        The age is the time between the timestamps of the first batch and the new one. Without
        timestamps it is the age of the segment.
        """
        if not self._batches:
            return False
        size_bytes = self._positions[-1] - self._positions[0]
        if size_bytes + append.valid_bytes > max_bytes:
            return True
        if append.last_offset - self.base_offset > _MAX_RELATIVE_OFFSET:
            return True
        first = self._rolling_based_timestamp
        age_ms = append.max_timestamp - first if first >= 0 else now_ms - self.created_ms
        return age_ms > max_age_ms

    def is_index_full(self, max_index_bytes: int) -> bool:
        """Whether one of the segment's indexes has no room for another entry.

        As in Kafka the last entry of the time index is kept for the largest timestamp.
        """
        self._look_at_all()
        offsets = len(self._index.batches(self._positions))
        most_times = max_index_bytes // TIME_ENTRY_BYTES - 1
        if not self._batches or offsets < most_times:
            return False
        return (
            offsets >= max_index_bytes // OFFSET_ENTRY_BYTES or self._time_entries() >= most_times
        )

    def _time_entries(self) -> int:
        """Return how many batches with an entry of the offset index have one in the time index."""
        timestamps = self._max_timestamps
        return len({timestamps[batch] for batch in self._index.batches(self._positions)})

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        upper_bound_offset: int,
        min_one_message: bool,
        as_view: bool = False,
    ) -> FetchDataInfo | None:
        """Return a slice of the segment, or None if nothing here ends after `start_offset`.

        It begins with the batch that holds `start_offset`, has at most `max_bytes` (but the
        whole first batch with `min_one_message`) and stops before the batch that holds
        `upper_bound_offset`. With `as_view` it may come as a view of the file. Raises UNKNOWN_SERVER_ERROR for a negative `max_bytes`.
        """
        if max_bytes < 0:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"Invalid max size {max_bytes} for log read"
            )
        self._read_up_to(start_offset)
        end_offsets, positions = self._end_offsets, self._positions
        first = bisect_right(end_offsets, start_offset)
        if first == len(end_offsets):
            return None
        start = positions[first]
        first_size = positions[first + 1] - start
        limit = bisect_right(end_offsets, upper_bound_offset, first)
        available = positions[limit] - start
        if first < self._spans:
            span = self._batches_within(first)
            batch = bisect_right(span.end_offsets, start_offset)
            start = span.positions[batch]
            first_size = span.positions[batch + 1] - start
            available = self.position(upper_bound_offset) - start
        size = min(available, max(first_size, max_bytes) if min_one_message else max_bytes)
        if size <= 0:
            return EMPTY_FETCH
        if isinstance(self._batches, FileBatches):
            position = start - positions[0]
            view = self._batches.view(position, size) if as_view else None
            read = [] if view is not None else [self._batches.read(position, size)]
            return FetchDataInfo(read, size, size < first_size, view)
        if size == available:
            return FetchDataInfo(self._batches[first:limit], size)
        end = start + size
        last = bisect_left(positions, end, first + 1, limit)
        records: list[bytes | memoryview] = [*self._batches[first:last]]
        surplus = positions[last] - end
        if surplus:
            records[-1] = memoryview(records[-1])[:-surplus]
        return FetchDataInfo(records, size, size < first_size)

    def fetch_upper_bound_offset(self, start_offset: int, size_bytes: int) -> int | None:
        """Return an offset that a read of so many bytes from `start_offset` on ends at or before.

        It is the last one of the batch with the next entry of the sparse index, None without any.
        """
        position = self.position(start_offset) + size_bytes
        if self._spans < len(self._end_offsets):
            self._look_at_all()
            batch = self._index.first_at_or_after(position, self._positions)
            return None if batch is None else self._end_offsets[batch] - 1
        for span in range(bisect_right(self._positions, position) - 1, self._spans):
            content = self._batches_within(span)
            index = OffsetIndex(self._index_interval_bytes)
            batch = index.first_at_or_after(position, content.positions)
            if position <= self._positions[span]:
                batch = 0
            if batch is not None:
                return content.end_offsets[batch] - 1
        return None

    def position(self, offset: int) -> int:
        """Return the bytes of the log before the batch that holds `offset` or follows it."""
        self._read_up_to(offset)
        entry = bisect_right(self._end_offsets, offset)
        start_offset = self._end_offsets[entry - 1] if entry else self.base_offset
        if entry < self._spans and offset > start_offset:
            span = self._batches_within(entry)
            return span.positions[bisect_right(span.end_offsets, offset)]
        return self._positions[entry]

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop the batch that holds `offset` and all later ones."""
        self._read_up_to(offset)
        keep = bisect_right(self._end_offsets, offset)
        if keep == len(self._end_offsets):
            return
        if keep < self._spans:
            span = self._batches_within(keep)
            open_spans(keep, [span], self._end_offsets, self._positions, self._max_timestamps)
            self._spans = keep
            keep += bisect_right(span.end_offsets, offset)
        del self._batches[keep:], self._end_offsets[keep:], self._max_timestamps[keep:]
        del self._positions[keep + 1 :]
        self._index.truncate_to(keep)
        self._released = min(self._released, keep)
        if not keep:
            self.created_ms = now_ms
            self._rolling_based_timestamp = NO_TIMESTAMP

    def release_before(self, offset: int) -> None:
        """Free the batches that end before `offset`, which nobody may read any more.

        All positions stay as they are. The batch with the largest timestamp is kept: it is asked for.
        """
        newest = bisect_left(self._max_timestamps, self.max_timestamp)
        before = bisect_right(self._end_offsets, offset)
        for index in range(self._released, before):
            if index != newest:
                self._batches[index] = b""
        self._released = max(self._released, before)

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self._end_offsets[-1] if self._end_offsets else self.base_offset

    def batches_from(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield all batches that are kept, from the one that holds `offset` or follows it."""
        self._read_up_to(offset)
        while (entry := bisect_right(self._end_offsets, offset)) < len(self._end_offsets):
            if entry >= self._spans:
                offset = self._end_offsets[entry]
                if batch := self._batches[entry]:
                    yield parse_header(batch), batch
                continue
            span = self._batches_within(entry)
            ends, starts, data = span.end_offsets, span.positions, span.batches[0]
            for number in range(bisect_right(ends, offset), len(ends)):
                batch = data[starts[number] - starts[0] : starts[number + 1] - starts[0]]
                yield parse_header(batch), batch
            offset = ends[-1]

    def base_offset_of_batch(self, offset: int) -> int:
        """Return where the batch begins that holds `offset` or follows it; the end after the last."""
        found = next(self.batches_from(offset), None)
        return self.end_offset if found is None else found[0].base_offset

    def batches_since(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield the batches at or after `offset` whose largest timestamp is at least `timestamp`."""
        self._read_up_to(self.base_offset)
        first = bisect_left(self._max_timestamps, timestamp)
        if first:
            offset = max(offset, self._end_offsets[first - 1])
        for header, batch in self.batches_from(offset):
            if header.max_timestamp >= timestamp:
                yield header, batch

    def indexes(self, aborted: Sequence[AbortedTxn]) -> SegmentIndexes:
        """Return the entries of the segment's index files; `aborted` are its aborted transactions."""
        self._look_at_all()
        return index_entries(
            self._end_offsets, self._positions, self._max_timestamps, self._index, aborted
        )

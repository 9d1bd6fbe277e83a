"""A segment of the log and its indexes; mirrors `LogSegment`.

A segment has its batches where `LogStorage` keeps them. There are two ways to find one:

    by entries   of the active segment, and of all in memory: sorted arrays with one entry for each batch
    by maps      of a closed segment on disk: a binary search of its index files, see `SealedBatches`

    end_offsets      offset after the batch          -> which batch holds an offset
    positions        bytes of the log before the batch; one more for the segment's end (a cleaned one ends
                     before the next one begins)
    max_timestamps   largest timestamp so far        -> first batch at or after a time

With entries a look-up is a bisection of an array. A segment that is closed gives them away, one that is cut takes
them back. One that is active again after a clean shutdown has both: what was there is found by maps.

Deliberate difference: Kafka's active segment has its sparse indexes too. Here they are made when it is closed;
where that can be seen before, `OffsetIndex` says where the entries are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.append_info import EMPTY_FETCH, FetchDataInfo
from broker_sim.log.memory import BATCH_OVERHEAD_BYTES
from broker_sim.log.offset_index import OffsetIndex
from broker_sim.log.storage import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    FileBatches,
    IndexedBatches,
    LogStorage,
    SealedBatches,
    SegmentContent,
)
from broker_sim.protocol.record_batch import NO_TIMESTAMP, BatchHeader, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.log.append_info import LogAppendInfo
    from broker_sim.log.storage import Batches, BatchPlace

__all__ = ["LogSegment"]

_MAX_RELATIVE_OFFSET = 2**31 - 1


class LogSegment:
    """Batches from `base_offset` on."""

    __slots__ = (
        "_batches",
        "_end_offsets",
        "_index",
        "_max_timestamps",
        "_positions",
        "_released",
        "_rolling_based_timestamp",
        "_sealed",
        "base_offset",
        "created_ms",
        "last_modified_ms",
        "start_position",
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
        self.start_position = position
        """The bytes of the log before this segment."""
        self.created_ms = now_ms
        self.last_modified_ms = now_ms
        self._end_offsets = array("q")
        self._positions = array("q", (position,))
        in_memory: list[bytes] = []
        self._batches: Batches = (
            in_memory if storage is None else storage.create_segment(base_offset, self._positions)
        )
        self._max_timestamps = array("q")
        self._index = OffsetIndex(index_interval_bytes)
        self._rolling_based_timestamp = NO_TIMESTAMP
        self._released = 0
        self._sealed: SealedBatches | None = None
        """The first batches, which are found by maps; the arrays have those behind."""

    @classmethod
    def of_content(cls, content: SegmentContent, index_interval_bytes: int) -> LogSegment:
        """Return the segment of batches that are kept already."""
        start, now_ms = content.start_position, content.modified_ms
        segment = cls(content.base_offset, start, now_ms, index_interval_bytes)
        segment._batches = content.batches
        segment._end_offsets = content.end_offsets
        segment._positions = content.positions
        segment._max_timestamps = content.max_timestamps
        segment._rolling_based_timestamp = content.first_timestamp
        if content.sealed is not None:
            segment._sealed = content.sealed.use_interval(index_interval_bytes)
        return segment

    def _load(self) -> None:
        """Make an entry of each batch that is found by maps."""
        sealed = self._sealed
        if sealed is None:
            return
        content, self._sealed = sealed.load(), None
        self._end_offsets[:0] = content.end_offsets
        self._positions[:0] = content.positions[:-1]
        self._max_timestamps[:0] = content.max_timestamps
        self._index.truncate_to(0)

    def become_inactive(self) -> None:
        """Give the entries away: nothing is appended any more, and the index files are written.

        Mirrors `LogSegment.onBecomeInactiveSegment`. In memory the entries stay.
        """
        file, size_bytes = self._batches, self.size_bytes
        if self.is_found_by_maps or not isinstance(file, FileBatches) or not size_bytes:
            return
        self._load()
        sealed = file.sealed(self.base_offset, self.end_offset, size_bytes, self.max_timestamp)
        self._sealed = sealed.use_interval(self._index.interval_bytes)
        del self._end_offsets[:], self._positions[:-1], self._max_timestamps[:]
        self._index.truncate_to(0)

    @property
    def is_found_by_maps(self) -> bool:
        """Whether no entry is kept in memory."""
        return self._sealed is not None and not self._end_offsets

    def __len__(self) -> int:
        """Return how many entries are kept in memory: one for each batch not found by maps."""
        return len(self._end_offsets)

    def __bool__(self) -> bool:
        """Return whether there is any batch."""
        return self._positions[-1] > self.start_position

    @property
    def size_bytes(self) -> int:
        """The bytes of all batches."""
        return self._positions[-1] - self.start_position

    @property
    def memory_bytes(self) -> int:
        """The bytes that the segment keeps in memory, with what its batches take beside them."""
        start = self._positions[self._released] if self._released else self.start_position
        kept_bytes = self._positions[-1] - start
        return kept_bytes + len(self._batches) * BATCH_OVERHEAD_BYTES

    @property
    def end_position(self) -> int:
        """The bytes of the log up to the end of this segment."""
        return self._positions[-1]

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any batch, -1 if there is none."""
        if self._max_timestamps:
            return self._max_timestamps[-1]
        return NO_TIMESTAMP if self._sealed is None else self._sealed.max_timestamp

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
            if self._sealed is None:
                self._rolling_based_timestamp = max_timestamp
            elif self._sealed.max_timestamp > max_timestamp:
                max_timestamp = self._sealed.max_timestamp
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
        size_bytes = self._positions[-1] - self.start_position
        if not size_bytes:
            return False
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
        self._load()
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
        sealed = self._sealed
        if sealed is not None and start_offset < sealed.end_offset:
            place = sealed.translate_offset(start_offset)
            start, first_size = place.position, place.end - place.position
            available = self.position(upper_bound_offset) - self.start_position - start
            size = min(available, max(first_size, max_bytes) if min_one_message else max_bytes)
            sealed.check(start, start + size)
            return self._read_file(start, size, first_size, as_view)
        end_offsets, positions = self._end_offsets, self._positions
        first = bisect_right(end_offsets, start_offset)
        if first == len(end_offsets):
            return None
        start = positions[first]
        first_size = positions[first + 1] - start
        limit = bisect_right(end_offsets, upper_bound_offset, first)
        available = positions[limit] - start
        size = min(available, max(first_size, max_bytes) if min_one_message else max_bytes)
        if isinstance(self._batches, FileBatches):
            return self._read_file(start - self.start_position, size, first_size, as_view)
        if size <= 0:
            return EMPTY_FETCH
        if size == available:
            return FetchDataInfo(self._batches[first:limit], size)
        end = start + size
        last = bisect_left(positions, end, first + 1, limit)
        records: list[bytes | memoryview] = [*self._batches[first:last]]
        surplus = positions[last] - end
        if surplus:
            records[-1] = memoryview(records[-1])[:-surplus]
        return FetchDataInfo(records, size, size < first_size)

    def _read_file(self, position: int, size: int, first_size: int, as_view: bool) -> FetchDataInfo:
        """Return so many bytes from there on, of which so many are those of the first batch."""
        if size <= 0:
            return EMPTY_FETCH
        file = self._batches
        assert isinstance(file, FileBatches)
        view = file.view(position, size) if as_view else None
        read = [] if view is not None else [file.read(position, size)]
        return FetchDataInfo(read, size, size < first_size, view)

    def fetch_upper_bound_offset(self, start_offset: int, size_bytes: int) -> int | None:
        """Return an offset that a read of so many bytes from `start_offset` on ends at or before.

        It is the last one of the batch with the next entry of the sparse index, None without any.
        """
        position = self.position(start_offset) + size_bytes
        if self._sealed is not None and self._end_offsets:
            self._load()  # where the next entry is depends on the last one that is found by maps
        if self._sealed is not None:
            return self._sealed.upper_bound_offset(position - self.start_position)
        batch = self._index.first_at_or_after(position, self._positions)
        return None if batch is None else self._end_offsets[batch] - 1

    def position(self, offset: int) -> int:
        """Return the bytes of the log before the batch that holds `offset` or follows it."""
        sealed = self._sealed
        if sealed is not None and offset < sealed.end_offset:
            return self.start_position + sealed.translate_offset(offset).position
        return self._positions[bisect_right(self._end_offsets, offset)]

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop the batch that holds `offset` and all later ones."""
        if offset >= self.end_offset:
            return
        self._load()
        keep = bisect_right(self._end_offsets, offset)
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
        if self._end_offsets:
            return self._end_offsets[-1]
        return self.base_offset if self._sealed is None else self._sealed.end_offset

    def batches_from(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield all batches that are kept, from the one that holds `offset` or follows it."""
        sealed = self._sealed
        if sealed is not None and offset < sealed.end_offset:
            yield from self._batches_at(sealed.places_from(offset))
            offset = sealed.end_offset
        while (entry := bisect_right(self._end_offsets, offset)) < len(self._end_offsets):
            offset = self._end_offsets[entry]
            if batch := self._batches[entry]:
                yield parse_header(batch), batch

    def _batches_at(self, places: Iterator[BatchPlace]) -> Iterator[tuple[BatchHeader, bytes]]:
        assert isinstance(self._batches, FileBatches)
        for place in places:
            batch = self._batches.read(place.position, place.end - place.position)
            yield parse_header(batch), batch

    def base_offset_of_batch(self, offset: int) -> int:
        """Return where the batch begins that holds `offset` or follows it; the end after the last."""
        found = next(self.batches_from(offset), None)
        return self.end_offset if found is None else found[0].base_offset

    def batches_since(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield the batches at or after `offset` whose largest timestamp is at least `timestamp`."""
        sealed = self._sealed
        if sealed is not None:
            yield from self._batches_at(sealed.places_since(timestamp, offset))
            offset = max(offset, sealed.end_offset)
        first = bisect_left(self._max_timestamps, timestamp)
        if first:
            offset = max(offset, self._end_offsets[first - 1])
        for header, batch in self.batches_from(offset):
            if header.max_timestamp >= timestamp:
                yield header, batch

    def indexed_batches(self) -> IndexedBatches:
        """Return what the index files are made of: the entries, which are taken back for that."""
        self._load()
        return IndexedBatches(
            self.base_offset,
            self._end_offsets,
            self._positions,
            self._max_timestamps,
            self._index,
        )

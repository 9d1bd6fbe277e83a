"""The segments of a log in the order of their offsets; mirrors `LocalLog` and `LogSegments`."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from broker_sim.log.append_info import EMPTY_FETCH, FetchDataInfo
from broker_sim.log.segment import LogSegment
from broker_sim.log.storage import LogStorage, MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from broker_sim.log.memory import ReplicaMemory
    from broker_sim.log.transaction_index import AbortedTxn
    from broker_sim.protocol.record_batch import BatchHeader


class LocalLog:
    """At least one segment; appends go to the last one, the active segment."""

    __slots__ = (
        "_base_offsets",
        "_memory",
        "_segments",
        "_storage",
        "active_segment",
        "index_interval_bytes",
        "log_end_offset",
        "size_bytes",
    )

    def __init__(
        self, now_ms: int, memory: ReplicaMemory, index_interval_bytes: int, storage: LogStorage | None = None
    ) -> None:
        """Open the segments in `storage` (default: an empty log in memory)."""
        self.index_interval_bytes = index_interval_bytes
        """The index interval of new segments, in bytes."""
        self._memory = memory
        self._storage = storage = storage or MemoryStorage()
        self._segments: list[LogSegment] = []
        end_position = 0
        for content in storage.load_segments(index_interval_bytes):
            if self._segments:
                self._close(self._segments[-1])
            self._segments.append(LogSegment.of_content(content, end_position))
            end_position = self._segments[-1].end_position
        if not self._segments:
            self._segments.append(self._new_segment(0, 0, now_ms))
        self._base_offsets = [segment.base_offset for segment in self._segments]
        self.active_segment = self._segments[-1]
        self.log_end_offset = self.active_segment.end_offset
        self.size_bytes = sum(segment.size_bytes for segment in self._segments)
        """The bytes of all segments; for reading only."""

    def _new_segment(self, base_offset: int, position: int, now_ms: int) -> LogSegment:
        batches = self._storage.create_segment(base_offset, self.index_interval_bytes)
        return LogSegment(base_offset, position, now_ms, batches)

    @property
    def segments(self) -> Sequence[LogSegment]:
        """The segments, the oldest first; for reading only."""
        return self._segments

    def append(self, batch: bytes, end_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Add a batch to the active segment; the log then ends at `end_offset`."""
        self.active_segment.append(batch, end_offset, max_timestamp, now_ms)
        self.log_end_offset = end_offset
        size_bytes = len(batch)
        self.size_bytes += size_bytes
        self._memory.append(size_bytes)

    def roll(self, base_offset: int, now_ms: int) -> None:
        """Begin a new active segment; it replaces an empty one of the same base offset."""
        end_position = self.active_segment.end_position
        if not self.active_segment and self.active_segment.base_offset == base_offset:
            self._segments.pop()
            self._base_offsets.pop()
        else:
            self.active_segment.become_inactive()
        self.active_segment = self._new_segment(base_offset, end_position, now_ms)
        self._segments.append(self.active_segment)
        self._base_offsets.append(base_offset)

    def read(
        self, start_offset: int, max_bytes: int, upper_bound_offset: int, min_one_message: bool, as_view: bool = False
    ) -> FetchDataInfo:
        """Return a slice of one segment, as `LogSegment.read`; empty at or above the upper bound.

        `start_offset` is at or after the first segment's base.
        """
        if start_offset >= upper_bound_offset:
            return EMPTY_FETCH
        active = self.active_segment
        if start_offset >= active.base_offset:
            data = active.read(start_offset, max_bytes, upper_bound_offset, min_one_message, as_view)
            return EMPTY_FETCH if data is None else data
        for segment in self._segments[self._floor(start_offset) :]:
            data = segment.read(start_offset, max_bytes, upper_bound_offset, min_one_message, as_view)
            if data is not None:
                return data
        return EMPTY_FETCH

    def fetch_upper_bound_offset(self, start_offset: int, size_bytes: int) -> int:
        """Return an offset at or after the end of a read of `size_bytes` from `start_offset`.

        As in Kafka it may be far beyond the read: the end of the segment that holds the records.
        """
        for index in range(self._floor(start_offset), len(self._segments) - 1):
            segment = self._segments[index]
            if start_offset < segment.end_offset:
                bound = segment.fetch_upper_bound_offset(start_offset, size_bytes)
                return self._base_offsets[index + 1] if bound is None else bound
        bound = self.active_segment.fetch_upper_bound_offset(start_offset, size_bytes)
        return self.log_end_offset if bound is None else bound

    def position(self, offset: int) -> int:
        """Return the number of bytes before the batch that holds `offset`, including deleted segments."""
        active = self.active_segment
        if offset >= self.log_end_offset:
            return active.end_position
        if offset >= active.base_offset:
            return active.position(offset)
        return self._segments[self._floor(offset)].position(offset)

    def base_offset_of_batch(self, offset: int) -> int:
        """Return the base offset of the batch that holds `offset`, or `offset` itself at the log's end."""
        return self._segments[self._floor(offset)].base_offset_of_batch(offset)

    def batches_from(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield all batches from the one that holds `offset` on."""
        for segment in self._segments[self._floor(offset) :]:
            yield from segment.batches_from(offset)

    def first_of_timestamp(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield the batches at or after `timestamp` of the first segment that has one."""
        for segment in self._segments:
            if segment.largest_timestamp >= timestamp:
                yield from segment.batches_since(timestamp, offset)
                return

    def truncate_to(self, offset: int, now_ms: int) -> list[LogSegment]:
        """Drop the batches that end after `offset`; return the deleted segments."""
        keep = bisect_right(self._base_offsets, offset)
        removed = self._segments[keep:]
        del self._segments[keep:], self._base_offsets[keep:]
        self._delete(removed)
        self.active_segment = self._segments[-1]
        self.active_segment.truncate_to(offset, now_ms)
        self._storage.truncated_to(offset)
        self.log_end_offset = offset
        self._count_bytes()
        return removed

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Drop everything; the next batch goes to `offset`."""
        self._delete(self._segments)
        self._storage.recovery_point = offset
        self.active_segment = self._new_segment(offset, 0, now_ms)
        self._segments = [self.active_segment]
        self._base_offsets = [offset]
        self.log_end_offset = offset
        self._count_bytes()

    def remove_oldest(self, count: int) -> None:
        """Drop the `count` oldest segments; the active one must stay."""
        assert count < len(self._segments)
        self._delete(self._segments[:count])
        del self._segments[:count], self._base_offsets[:count]
        self._count_bytes()

    def _delete(self, segments: Iterable[LogSegment]) -> None:
        for segment in segments:
            self._storage.delete_segment(segment.base_offset)

    def replace_segments(
        self, cleaned: LogSegment, replaced: Sequence[LogSegment], aborted: Sequence[AbortedTxn]
    ) -> None:
        """Replace the consecutive segments `replaced` by `cleaned`.

        Mirrors `LocalLog.replaceSegments`; `aborted` are the transactions of its `.txnindex`. Positions
        of later segments stay as they are, so they are comparable with earlier ones.
        """
        first = self._segments.index(replaced[0])
        cleaned.replace_in(self._storage, [segment.base_offset for segment in replaced])
        self._seal(cleaned, aborted)
        cleaned.become_inactive()
        self._segments[first : first + len(replaced)] = [cleaned]
        self._base_offsets[first : first + len(replaced)] = [cleaned.base_offset]
        self._count_bytes()

    def seal_active(self, aborted: Sequence[AbortedTxn]) -> None:
        """Flush the active segment and its indexes to disk; does nothing in memory."""
        self._seal(self.active_segment, aborted)

    def restore_aborted(self, aborted_in: Callable[[int, int], Sequence[AbortedTxn]]) -> None:
        """Repair the `.txnindex` of closed segments; `aborted_in(start, end)` returns aborted transactions."""
        for segment in self._segments[:-1]:
            aborted = aborted_in(segment.base_offset, segment.end_offset)
            self._storage.restore_aborted(segment.base_offset, aborted)

    def _close(self, segment: LogSegment) -> None:
        """Close a segment: its batches are then looked up in its index files."""
        if not segment.uses_index_files:
            self._storage.restore_indexes(segment.base_offset, segment.entries())
            segment.become_inactive()

    def _seal(self, segment: LogSegment, aborted: Sequence[AbortedTxn]) -> None:
        storage, base_offset, end_offset = self._storage, segment.base_offset, segment.end_offset
        # In memory no indexes are needed, and building them would read all batches.
        if storage.is_persistent and not storage.is_sealed(base_offset, end_offset):
            storage.seal(base_offset, segment.entries().indexes(aborted), end_offset)

    def release_before(self, offset: int) -> None:
        """Free the batches in memory that end before `offset`; the segments keep their size."""
        if self._storage.is_persistent:
            return
        for segment in self._segments[: self._floor(offset) + 1]:
            segment.release_before(offset)
        self._count_bytes()

    def _count_bytes(self) -> None:
        """Recompute the size after segments were removed or have shrunk."""
        self.size_bytes = sum(segment.size_bytes for segment in self._segments)
        self._memory.shrink_to(sum(segment.memory_bytes for segment in self._segments))

    def _floor(self, offset: int) -> int:
        """Return the index of the last segment that begins at or before `offset`."""
        return max(bisect_right(self._base_offsets, offset) - 1, 0)

"""A segment of the log and its indexes; mirrors `LogSegment`.

The batches are in memory or in a file, see `Batches`. A segment adds its position in the log, its age, and the rule
for rolling the next one.

Deliberate difference: Kafka's active segment has its sparse indexes too. Here they are made when it is closed;
until then `OffsetIndex` computes the entries where they are visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.storage import MAX_RELATIVE_OFFSET, OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, MemoryBatches
from broker_sim.protocol.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.log.append_info import FetchDataInfo, LogAppendInfo
    from broker_sim.log.storage import BatchEntries, Batches, LogStorage, SegmentContent
    from broker_sim.protocol.record_batch import BatchHeader


class LogSegment:
    """Batches from `base_offset` on."""

    __slots__ = (
        "_batches",
        "base_offset",
        "created_ms",
        "first_batch_timestamp",
        "last_modified_ms",
        "start_position",
    )

    def __init__(self, base_offset: int, position: int, now_ms: int, batches: Batches) -> None:
        """Create a segment for batches that are still empty; for others see `of_content`."""
        self.base_offset = base_offset
        self.start_position = position
        """Number of bytes of the log before this segment."""
        self.created_ms = now_ms
        self.last_modified_ms = now_ms
        self._batches = batches
        self.first_batch_timestamp = NO_TIMESTAMP
        """The largest timestamp of the first batch, -1 if there is none."""

    @classmethod
    def in_memory(cls, base_offset: int, position: int, now_ms: int, index_interval_bytes: int) -> LogSegment:
        """Return an empty segment in memory, wherever the log is kept."""
        return cls(base_offset, position, now_ms, MemoryBatches(base_offset, index_interval_bytes))

    @classmethod
    def of_content(cls, content: SegmentContent, position: int) -> LogSegment:
        """Return a segment for batches that are already stored."""
        segment = cls(content.base_offset, position, content.modified_ms, content.batches)
        segment.first_batch_timestamp = content.first_timestamp
        return segment

    def become_inactive(self) -> None:
        """Stop being the active segment; mirrors `LogSegment.onBecomeInactiveSegment`."""
        self._batches.become_inactive()

    @property
    def uses_index_files(self) -> bool:
        """Whether all batches are looked up in index files, without entries in memory."""
        return self._batches.uses_index_files

    def __len__(self) -> int:
        """Return the number of entries in memory: one for each batch that is not looked up in index files."""
        return self._batches.entry_count

    def __bool__(self) -> bool:
        """Return whether there is any batch."""
        return self._batches.size_bytes > 0

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self._batches.end_offset

    @property
    def size_bytes(self) -> int:
        """The bytes of all batches."""
        return self._batches.size_bytes

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that the segment uses, including the overhead of its batches."""
        return self._batches.memory_bytes

    @property
    def end_position(self) -> int:
        """Bytes of the log up to the end of this segment; after a cleaning there may be a gap to the next segment."""
        return self.start_position + self._batches.size_bytes

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any batch, -1 if there is none."""
        return self._batches.max_timestamp

    @property
    def largest_timestamp(self) -> int:
        """The time that retention uses: the largest timestamp, otherwise the time of the last append."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self.last_modified_ms

    def append(self, batch: bytes, end_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Add one batch whose last record is at `end_offset - 1`."""
        batches = self._batches
        is_first = self.first_batch_timestamp < 0 and not batches.size_bytes
        batches.append(batch, end_offset, max_timestamp)
        if is_first:
            self.first_batch_timestamp = max_timestamp
        self.last_modified_ms = now_ms

    def replace_in(self, storage: LogStorage, replaced: Sequence[int]) -> None:
        """Store this segment, which was filled in memory, instead of the segments with these base offsets."""
        self._batches = storage.replace_segments(replaced, self._batches, self.last_modified_ms)

    def should_roll(self, append: LogAppendInfo, now_ms: int, max_bytes: int, max_age_ms: int) -> bool:
        """Whether the append needs a new segment: because of size, offset range, or age.

        The age is the time between the timestamps of the first batch and the new one. Without
        timestamps it is the age of the segment.
        """
        size_bytes = self._batches.size_bytes
        if not size_bytes:
            return False
        if size_bytes + append.valid_bytes > max_bytes:
            return True
        if append.last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        first = self.first_batch_timestamp
        age_ms = append.max_timestamp - first if first >= 0 else now_ms - self.created_ms
        return age_ms > max_age_ms

    def is_index_full(self, max_index_bytes: int) -> bool:
        """Whether one of the segment's indexes has no room for another entry.

        As in Kafka the last entry of the time index is kept for the largest timestamp.
        """
        entries = self._batches.entries()
        indexed = entries.indexed()
        max_times = max_index_bytes // TIME_ENTRY_BYTES - 1
        if not len(entries) or len(indexed) < max_times:
            return False
        if len(indexed) >= max_index_bytes // OFFSET_ENTRY_BYTES:
            return True
        # Batches with an entry in the offset index have one in the time index if their timestamp is a new maximum.
        return len({entries.max_timestamps[batch] for batch in indexed}) >= max_times

    def read(
        self, start_offset: int, max_bytes: int, upper_bound_offset: int, min_one_message: bool, as_view: bool = False
    ) -> FetchDataInfo | None:
        """Return a slice of the segment, or None if no batch ends after `start_offset`.

        It begins with the batch that holds `start_offset`, has at most `max_bytes` (but the
        whole first batch with `min_one_message`) and stops before the batch that holds
        `upper_bound_offset`. With `as_view` it may come as a view of the file. Raises UNKNOWN_SERVER_ERROR for a
        negative `max_bytes`.
        """
        if max_bytes < 0:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Invalid max size {max_bytes} for log read")
        return self._batches.read(start_offset, max_bytes, upper_bound_offset, min_one_message, as_view)

    def fetch_upper_bound_offset(self, start_offset: int, size_bytes: int) -> int | None:
        """Return an offset at or after the end of a read of that many bytes from `start_offset`.

        It is the last one of the batch with the next entry of the sparse index, None without any.
        """
        batches = self._batches
        return batches.upper_bound_offset(batches.position(start_offset) + size_bytes)

    def position(self, offset: int) -> int:
        """Return the bytes of the log before the batch that holds `offset` or follows it."""
        return self.start_position + self._batches.position(offset)

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop the batch that holds `offset` and all later ones."""
        if offset >= self.end_offset:
            return
        self._batches.truncate_to(offset)
        if not self:
            self.created_ms = now_ms
            self.first_batch_timestamp = NO_TIMESTAMP

    def release_before(self, offset: int) -> None:
        """Free the batches in memory that end before `offset`, which cannot be read any more.

        All positions stay as they are. The batch with the largest timestamp is kept, because look-ups by time need it.
        """
        self._batches.release_before(offset)

    def batches_from(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield all batches that are kept, from the one that holds `offset` or follows it."""
        return self._batches.batches_from(offset)

    def base_offset_of_batch(self, offset: int) -> int:
        """Return the base offset of the batch that holds `offset` or follows it, the end offset behind the last."""
        batch = next(self.batches_from(offset), None)
        return self.end_offset if batch is None else batch[0].base_offset

    def batches_since(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield the batches at or after `offset` whose largest timestamp is at least `timestamp`."""
        return self._batches.batches_since(timestamp, offset)

    def entries(self) -> BatchEntries:
        """Return the entries of all batches, from which the index files are made."""
        return self._batches.entries()

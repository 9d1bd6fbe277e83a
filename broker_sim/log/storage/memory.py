"""A log in memory: a segment's batches are a list, and the data ends with the process."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from broker_sim.log.append_info import EMPTY_FETCH, FetchDataInfo
from broker_sim.log.memory import BATCH_OVERHEAD_BYTES
from broker_sim.log.storage.batch_entries import BatchEntries
from broker_sim.log.storage.interface import LogStorage
from broker_sim.protocol.record_batch import parse_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.log.leader_epoch_cache import EpochEntry
    from broker_sim.log.producer_state_entry import ProducerStateEntry
    from broker_sim.log.storage.index_files import SegmentIndexes
    from broker_sim.log.storage.interface import Batches, SegmentContent
    from broker_sim.log.transaction_index import AbortedTxn
    from broker_sim.protocol.record_batch import BatchHeader


class MemoryBatches:
    """The `Batches` of a segment in memory; reads return the batches themselves, not copies."""

    __slots__ = ("_batches", "_entries", "_released", "size_bytes")

    uses_index_files = False

    def __init__(self, base_offset: int, index_interval_bytes: int) -> None:
        """Begin without batches."""
        self._batches: list[bytes] = []
        self._entries = BatchEntries(base_offset, index_interval_bytes)
        self._released = 0
        self.size_bytes = 0
        """The bytes of all batches, including released ones."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self._entries.end_offset

    @property
    def memory_bytes(self) -> int:
        """Bytes in memory, including the overhead of the batches."""
        positions = self._entries.positions
        return positions[-1] - positions[self._released] + len(self._batches) * BATCH_OVERHEAD_BYTES

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any batch, -1 if there is none."""
        return self._entries.max_timestamp

    @property
    def entry_count(self) -> int:
        """Number of entries, one for each batch."""
        return len(self._batches)

    # -- changes --------------------------------------------------------------------------------

    def append(self, batch: bytes, end_offset: int, max_timestamp: int) -> None:
        """Add a batch after the last one."""
        self._batches.append(batch)
        size_bytes = len(batch)
        self._entries.add(end_offset, size_bytes, max_timestamp)
        self.size_bytes += size_bytes

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all later ones."""
        keep = self._entries.number_of(offset)
        del self._batches[keep:]
        self._entries.truncate_to(keep)
        self.size_bytes = self._entries.size_bytes
        self._released = min(self._released, keep)

    def release_before(self, offset: int) -> None:
        """Free the batches that end before `offset`, which cannot be read any more.

        All positions stay as they are. The batch with the largest timestamp is kept, because look-ups by time need it.
        """
        timestamps = self._entries.max_timestamps
        newest = bisect_left(timestamps, self.max_timestamp)
        before = self._entries.number_of(offset)
        for number in range(self._released, before):
            if number != newest:
                self._batches[number] = b""
        self._released = max(self._released, before)

    def become_inactive(self) -> None:
        """Do nothing: the entries stay."""

    def entries(self) -> BatchEntries:
        """Return entries for all batches."""
        return self._entries

    # -- look-ups -------------------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        upper_bound_offset: int,
        min_one_message: bool,
        as_view: bool,  # noqa: ARG002 - there is no file
    ) -> FetchDataInfo | None:
        """Return a slice of the segment; see `Batches.read`."""
        end_offsets, positions = self._entries.end_offsets, self._entries.positions
        first = bisect_right(end_offsets, start_offset)
        if first == len(end_offsets):
            return None
        start = positions[first]
        first_size = positions[first + 1] - start
        limit = bisect_right(end_offsets, upper_bound_offset, first)
        available = positions[limit] - start
        size = min(available, max(first_size, max_bytes) if min_one_message else max_bytes)
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

    def position(self, offset: int) -> int:
        """Return the bytes before the batch that holds `offset` or follows it."""
        return self._entries.position(offset)

    def upper_bound_offset(self, position: int) -> int | None:
        """Return the last offset of the first batch with an index entry at or after the position, or None."""
        return self._entries.upper_bound_offset(position)

    def batches_from(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield all batches that are kept, from the one that holds `offset` or follows it."""
        entries = self._entries
        while (number := entries.number_of(offset)) < len(entries):
            offset = entries.end_offsets[number]
            if batch := self._batches[number]:
                yield parse_header(batch), batch

    def batches_since(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield the batches at or after `offset` whose largest timestamp is at least `timestamp`."""
        for header, batch in self.batches_from(self._entries.first_since(timestamp, offset)):
            if header.max_timestamp >= timestamp:
                yield header, batch


class MemoryStorage(LogStorage):
    """The storage of a log in memory; it has only the snapshots, the log's own objects have the rest."""

    is_persistent = False

    def __init__(self) -> None:
        self.snapshots: dict[int, list[ProducerStateEntry]] = {}
        self.high_watermark = 0
        self.log_start_offset = 0
        self.recovery_point = 0

    def watch(self, on_failed: Callable[[], object]) -> None:
        """Do nothing: memory does not fail."""

    def fail(self, action: str, error: ApiError) -> None:  # noqa: ARG002
        """Raise the error; in memory only a bug can cause it."""
        raise error

    def load_segments(self, index_interval_bytes: int) -> Iterator[SegmentContent]:  # noqa: ARG002
        """Yield nothing: a log in memory begins empty."""
        return iter(())

    def load_leader_epochs(self) -> list[EpochEntry]:
        """Return nothing."""
        return []

    def load_aborted_transactions(self) -> list[AbortedTxn]:
        """Return nothing."""
        return []

    def create_segment(self, base_offset: int, index_interval_bytes: int) -> MemoryBatches:
        """Return no batches."""
        return MemoryBatches(base_offset, index_interval_bytes)

    def delete_segment(self, base_offset: int) -> None:
        """Do nothing: the list is freed with the segment."""

    def replace_segments(
        self,
        old_base_offsets: Sequence[int],  # noqa: ARG002 - their lists are freed with the segments
        cleaned: Batches,
        modified_ms: int,  # noqa: ARG002
    ) -> Batches:
        """Return the new batches as they are."""
        return cleaned

    def restore_indexes(self, base_offset: int, entries: BatchEntries) -> None:
        """Do nothing: there are no index files."""

    def restore_aborted(self, base_offset: int, aborted: Sequence[AbortedTxn]) -> None:
        """Do nothing, as `restore_indexes`."""

    def is_sealed(self, base_offset: int, end_offset: int) -> bool:  # noqa: ARG002
        """Return True, as `restore_indexes`."""
        return True

    def seal(self, base_offset: int, indexes: SegmentIndexes, end_offset: int) -> None:
        """Do nothing: a segment in memory has no index but its arrays."""

    def flush(self, base_offset: int, end_offset: int) -> None:
        """Do nothing: there is no disk."""

    def write_leader_epochs(self, entries: Sequence[EpochEntry]) -> None:
        """Do nothing: the cache itself survives."""

    def delete(self) -> None:
        """Do nothing."""

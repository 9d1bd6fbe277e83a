"""The interface between a log and its storage.

    PartitionLog           LogStorage              memory        files
     ├ LogSegment           ├ create_segment        list          NN.log
     ├ its indexes          ├ seal                  -             NN.index, .timeindex, .txnindex
     ├ ProducerStateManager ├ snapshots             dict          NN.snapshot
     └ LeaderEpochCache     └ write_leader_epochs   -             leader-epoch-checkpoint

The batches of a segment are `MemoryBatches` or `FileBatches`. Both use a `BatchLookup`: `BatchEntries`, which are
arrays in memory, or `SealedBatches`, the index files of a closed segment on disk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.log.append_info import FetchDataInfo
    from broker_sim.log.leader_epoch_cache import EpochEntry
    from broker_sim.log.producer_state_entry import ProducerStateEntry
    from broker_sim.log.storage.batch_entries import BatchEntries, BatchPlace
    from broker_sim.log.storage.index_files import SegmentIndexes
    from broker_sim.log.transaction_index import AbortedTxn
    from broker_sim.protocol.record_batch import BatchHeader


class BatchLookup(Protocol):
    """Finds batches by offset and by time. Positions are bytes of the segment."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any of these batches, -1 if there is none."""

    def translate_offset(self, offset: int) -> BatchPlace | None:
        """Return the place of the batch that holds `offset` or follows it, None after the last one."""

    def places_from(self, offset: int) -> Iterator[BatchPlace]:
        """Yield the places of the batches from the one that holds `offset` or follows it."""

    def places_since(self, timestamp: int, offset: int) -> Iterator[BatchPlace]:
        """Yield the batches at or after `offset` that may have a record at or after `timestamp`."""

    def upper_bound_offset(self, position: int) -> int | None:
        """Return the last offset of the first batch with an index entry at or after the position, or None."""

    def check(self, position: int, end: int) -> None:
        """Verify the batches from `position` on that begin before `end`."""


class Batches(Protocol):
    """The batches of one segment. Raises as `LogStorage`."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""

    @property
    def size_bytes(self) -> int:
        """The bytes of all batches."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory charged to the log, including the overhead of its batches."""

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any batch, -1 if there is none."""

    @property
    def entry_count(self) -> int:
        """Number of batches with an entry in memory."""

    @property
    def uses_index_files(self) -> bool:
        """Whether there are batches, and all are looked up in index files."""

    def append(self, batch: bytes, end_offset: int, max_timestamp: int) -> None:
        """Add a batch after the last one."""

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all later ones."""

    def release_before(self, offset: int) -> None:
        """Free the memory of the batches that end before `offset`; positions and sizes stay."""

    def become_inactive(self) -> None:
        """Stop being the active segment; the index files have been written."""

    def entries(self) -> BatchEntries:
        """Return entries for all batches."""

    def read(
        self, start_offset: int, max_bytes: int, upper_bound_offset: int, min_one_message: bool, as_view: bool
    ) -> FetchDataInfo | None:
        """Return a slice of the segment; see `LogSegment.read`."""

    def position(self, offset: int) -> int:
        """Return the bytes before the batch that holds `offset` or follows it."""

    def upper_bound_offset(self, position: int) -> int | None:
        """Return the same as `BatchLookup.upper_bound_offset`."""

    def batches_from(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield all batches that are kept, from the one that holds `offset` or follows it."""

    def batches_since(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield the batches at or after `offset` whose largest timestamp is at least `timestamp`."""


class SegmentContent(NamedTuple):
    """A segment that is already stored."""

    base_offset: int
    batches: Batches
    first_timestamp: int
    """The largest timestamp of the first batch, -1 if there is none."""
    modified_ms: int


class LogStorage(ABC):
    """The data of one partition's log. Thread rule: only the scheduler's thread.

    Every method raises KAFKA_STORAGE_ERROR if the data cannot be read or written; the log is offline from then on.
    """

    is_persistent: bool
    """Whether the data outlives the process, so that no memory is freed for records below the log start."""
    snapshots: MutableMapping[int, list[ProducerStateEntry]]
    """Snapshots of the producers by offset; an assignment stores one with the log."""
    high_watermark: int
    """The high watermark of the last checkpoint."""
    log_start_offset: int
    """The log start offset of the last checkpoint."""
    recovery_point: int
    """The offset up to which everything is known to be on disk; Kafka's recovery point."""
    begins_without_producers: bool = False
    """Whether the log was shut down cleanly without any snapshot, not even a damaged one."""
    file_delete_delay_ms: int = 60_000
    """Delay before the files of a deleted segment are removed, `file.delete.delay.ms` of the topic."""

    @abstractmethod
    def watch(self, on_failed: Callable[[], object]) -> None:
        """Call `on_failed()` once, when the log goes offline."""

    @abstractmethod
    def fail(self, action: str, error: ApiError) -> None:
        """Take the log offline because its data is invalid."""

    @abstractmethod
    def load_segments(self, index_interval_bytes: int) -> Iterator[SegmentContent]:
        """Yield the stored segments, the oldest first; torn ends are truncated."""

    @abstractmethod
    def load_leader_epochs(self) -> list[EpochEntry]:
        """Return the stored leader epochs, the oldest first; `load_segments` must have been exhausted."""

    @abstractmethod
    def load_aborted_transactions(self) -> list[AbortedTxn]:
        """Return the aborted transactions of the segments; `load_segments` must have been exhausted."""

    @abstractmethod
    def create_segment(self, base_offset: int, index_interval_bytes: int) -> Batches:
        """Return the batches of a new, empty segment with this index interval."""

    @abstractmethod
    def delete_segment(self, base_offset: int) -> None:
        """Delete a segment with its indexes."""

    def truncated_to(self, offset: int) -> None:
        """Record a truncation to `offset`: later batches are no longer on disk."""
        self.recovery_point = min(self.recovery_point, offset)

    @abstractmethod
    def replace_segments(self, old_base_offsets: Sequence[int], cleaned: Batches, modified_ms: int) -> Batches:
        """Replace old segments by a cleaned one, atomically even if the process is killed.

        The new segment begins at the first of the old base offsets and has that modification time. Returns its
        batches, which are `cleaned` itself for logs in memory.
        """

    @abstractmethod
    def restore_indexes(self, base_offset: int, entries: BatchEntries) -> None:
        """Rewrite the offset and time index of a closed segment if they do not match its batches."""

    @abstractmethod
    def restore_aborted(self, base_offset: int, aborted: Sequence[AbortedTxn]) -> None:
        """Rewrite the transaction index of a closed segment if it does not match its batches."""

    @abstractmethod
    def is_sealed(self, base_offset: int, end_offset: int) -> bool:
        """Return whether the segment is on disk up to `end_offset`, with its indexes."""

    @abstractmethod
    def seal(self, base_offset: int, indexes: SegmentIndexes, end_offset: int) -> None:
        """Write the segment's indexes, and flush it to disk up to `end_offset`."""

    @abstractmethod
    def flush(self, base_offset: int, end_offset: int) -> None:
        """Flush the batches of the last segment to disk, up to `end_offset`."""

    @abstractmethod
    def write_leader_epochs(self, entries: Sequence[EpochEntry]) -> None:
        """Store the leader epochs."""

    @abstractmethod
    def delete(self) -> None:
        """Delete all data, because the partition is deleted."""

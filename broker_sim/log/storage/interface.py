"""What a log asks of the place where its data is kept.

    PartitionLog           LogStorage              memory        files
     ├ LogSegment           ├ create_segment        list          NN.log
     ├ its indexes          ├ seal                  -             NN.index, .timeindex, .txnindex
     ├ ProducerStateManager ├ snapshots             dict          NN.snapshot
     └ LeaderEpochCache     └ write_leader_epochs   -             leader-epoch-checkpoint

A segment works on its batches as on a list, so in memory they are one, and appends and reads take no
step more. Look-ups go through arrays of the segment in both cases, but for closed segments on disk: `SealedBatches`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol, overload

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator, MutableMapping, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.log.leader_epoch_cache import EpochEntry
    from broker_sim.log.producer_state_entry import ProducerStateEntry
    from broker_sim.log.storage.batch_scan import SegmentContent
    from broker_sim.log.storage.index_files import SegmentIndexes
    from broker_sim.log.storage.index_restore import IndexedBatches
    from broker_sim.log.transaction_index import AbortedTxn

__all__ = ["Batches", "LogStorage"]


class Batches(Protocol):
    """The batches of one segment; a list of `bytes` is one.

    Raises as `LogStorage`. A slice may come as fewer buffers than batches: their bytes are what counts. Only a tail is deleted,
    and only batches in memory are replaced.
    """

    def append(self, batch: bytes, /) -> None:
        """Add a batch at the end."""

    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, index: int, /) -> bytes: ...

    @overload
    def __getitem__(self, index: slice, /) -> list[bytes]: ...

    def __setitem__(self, index: int, batch: bytes, /) -> None: ...

    def __delitem__(self, tail: slice, /) -> None: ...


class LogStorage(ABC):
    """The data of one partition's log. Thread rule: only the scheduler's thread.

    Every method raises KAFKA_STORAGE_ERROR where the data cannot be read or written. The log is offline
    from then on.
    """

    is_persistent: bool
    """Whether the data outlives the process, so that nothing is freed while it is in the log."""
    snapshots: MutableMapping[int, list[ProducerStateEntry]]
    """The producers at an offset, by that offset; what is set here is kept as the rest is."""
    high_watermark: int
    """That of the last checkpoint when the log is opened."""
    log_start_offset: int
    """That of the last checkpoint when the log is opened."""
    recovery_point: int
    """Everything before this offset is known to be on the disk; Kafka's recovery point."""
    begins_without_producers: bool = False
    """Whether it was shut down cleanly before it was opened, and there was no snapshot, not even a damaged one."""
    file_delete_delay_ms: int = 60_000
    """How long the files of a deleted segment are kept; the topic's configuration sets it."""

    @abstractmethod
    def watch(self, on_failed: Callable[[], object]) -> None:
        """Call `on_failed()` once, when the log goes offline."""

    @abstractmethod
    def fail(self, action: str, error: ApiError) -> None:
        """Take the log offline: what is kept cannot be the data of a log, as `error` says."""

    @abstractmethod
    def load_segments(self) -> Iterator[SegmentContent]:
        """Yield the segments that are kept, the oldest first; torn ends are cut off."""

    @abstractmethod
    def load_leader_epochs(self) -> list[EpochEntry]:
        """Return the leader epochs that are kept, the oldest first; call `load_segments` to its end before."""

    @abstractmethod
    def load_aborted_transactions(self) -> list[AbortedTxn]:
        """Return the aborted transactions of the segments; call `load_segments` to its end before."""

    @abstractmethod
    def create_segment(self, base_offset: int, positions: array[int]) -> Batches:
        """Return the batches of a new, empty segment.

        `positions` belongs to the segment: the bytes of the log before each batch, and at its end.
        """

    @abstractmethod
    def delete_segment(self, base_offset: int) -> None:
        """Delete a segment with its indexes."""

    def truncated_to(self, offset: int) -> None:
        """Hear that nothing from `offset` on is there any more: what comes next is not on the disk."""
        self.recovery_point = min(self.recovery_point, offset)

    @abstractmethod
    def replace_segments(
        self,
        old_base_offsets: Sequence[int],
        cleaned: Sequence[bytes],
        positions: array[int],
        modified_ms: int,
    ) -> Batches:
        """Put a cleaned segment in the place of old ones, in one step even for a kill.

        It begins at the first of the old base offsets and counts as modified at that time;
        `positions` as for `create_segment`. Returns its batches.
        """

    @abstractmethod
    def restore_indexes(self, base_offset: int, indexed: IndexedBatches) -> None:
        """Make the offset and time index of a closed segment what they should be."""

    @abstractmethod
    def restore_aborted(self, base_offset: int, aborted: Sequence[AbortedTxn]) -> None:
        """Make the index of a closed segment's aborted transactions what it should be."""

    @abstractmethod
    def is_sealed(self, base_offset: int, end_offset: int) -> bool:
        """Return whether the segment is known to be on the disk up to there, with its indexes."""

    @abstractmethod
    def seal(self, base_offset: int, indexes: SegmentIndexes, end_offset: int) -> None:
        """Write the segment's indexes and bring all of it to the disk, up to `end_offset`."""

    @abstractmethod
    def flush(self, base_offset: int, end_offset: int) -> None:
        """Bring the batches of the last segment to the disk, up to `end_offset`."""

    @abstractmethod
    def write_leader_epochs(self, entries: Sequence[EpochEntry]) -> None:
        """Keep the leader epochs."""

    @abstractmethod
    def delete(self) -> None:
        """Delete everything: the partition is deleted."""

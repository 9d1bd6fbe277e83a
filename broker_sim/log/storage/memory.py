"""A log in memory: a segment's batches are a list, and the data ends with the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log.storage.interface import LogStorage
from broker_sim.log.storage.memory_batches import MemoryBatches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.log.leader_epoch_cache import EpochEntry
    from broker_sim.log.producer_state_entry import ProducerStateEntry
    from broker_sim.log.storage.batch_entries import BatchEntries
    from broker_sim.log.storage.index_files import SegmentIndexes
    from broker_sim.log.storage.interface import Batches, SegmentContent
    from broker_sim.log.transaction_index import AbortedTxn


class MemoryStorage(LogStorage):
    """Keeps what the log's own objects do not keep: the snapshots."""

    is_persistent = False

    def __init__(self) -> None:
        self.snapshots: dict[int, list[ProducerStateEntry]] = {}
        self.high_watermark = 0
        self.log_start_offset = 0
        self.recovery_point = 0

    def watch(self, on_failed: Callable[[], object]) -> None:
        """Do nothing: memory does not fail."""

    def fail(self, action: str, error: ApiError) -> None:  # noqa: ARG002
        """Raise the error: in memory only a defect can be its cause."""
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
        """Do nothing: the list goes with the segment."""

    def replace_segments(
        self,
        old_base_offsets: Sequence[int],  # noqa: ARG002 - their lists go with their segments
        cleaned: Batches,
        modified_ms: int,  # noqa: ARG002
    ) -> Batches:
        """Return the new batches as they are."""
        return cleaned

    def restore_indexes(self, base_offset: int, entries: BatchEntries) -> None:
        """Do nothing: there is nothing to lose."""

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
        """Do nothing: the cache is what is kept."""

    def delete(self) -> None:
        """Do nothing."""

"""The offsets of a log between its first record and its end, and their checkpoints.

    log start offset ≤ last stable offset ≤ high watermark ≤ log end offset

             deleted │ decided │ undecided │ not on all replicas │
    ─────────────────┼─────────┼───────────┼─────────────────────┼──────▶ offsets
              log start   last stable   high watermark        log end

Part of `UnifiedLog`. What moves an offset tells the parts of the log for which that matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log import range_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.log.leader_epoch_cache import LeaderEpochCache
    from broker_sim.log.local_log import LocalLog
    from broker_sim.log.memory import ReplicaMemory
    from broker_sim.log.producer_state_manager import ProducerStateManager
    from broker_sim.log.storage import LogStorage
    from broker_sim.metadata.topic_partition import TopicPartition


class LogOffsets:
    """The offsets of one log and the parts that they belong to; `PartitionLog` is the whole."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        local_log: LocalLog,
        epochs: LeaderEpochCache,
        producer_state: ProducerStateManager,
        storage: LogStorage,
        memory: ReplicaMemory,
        changed: dict[LogOffsets, None],
    ) -> None:
        self.topic_partition = topic_partition
        self.storage = storage
        self.memory = memory
        self.leader_epoch_cache = epochs
        self.producer_state = producer_state
        self.log_start_offset = 0
        self.high_watermark = 0
        self._local_log = local_log
        self._changed = changed
        self.on_offsets_moved: Callable[[], object] = lambda: None
        self.on_log_start_moved: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        names = ("log_start_offset", "last_stable_offset", "high_watermark", "log_end_offset")
        offsets = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f"{type(self).__name__}({self.topic_partition}, {offsets})"

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._local_log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is decided and replicated."""
        first_unstable = self.producer_state.first_unstable_offset
        if first_unstable is None or first_unstable >= self.high_watermark:
            return self.high_watermark
        if first_unstable < self.log_start_offset:
            return self._local_log.base_offset_of_batch(self.log_start_offset)
        return first_unstable

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, clamped into [log start, log end]; return it."""
        end_offset = self._local_log.log_end_offset
        high_watermark = min(max(offset, self.log_start_offset), end_offset)
        self._set_high_watermark(high_watermark)
        return high_watermark

    def _set_high_watermark(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark
        self._changed[self] = None
        self.on_offsets_moved()
        self.producer_state.on_high_watermark_updated(high_watermark)

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Move the high watermark to `offset` if that is forward; return whether it moved.

        Raises ValueError beyond the log's end.
        """
        if offset <= self.high_watermark:
            return False
        if offset > self._local_log.log_end_offset:
            raise range_errors.high_watermark_above_log_end(self, offset)
        self._set_high_watermark(offset)  # above the one before, so above the log start
        return True

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Delete the records before `offset`; return whether there were any.

        Their segments go with the next `delete_old_segments`. Raises OFFSET_OUT_OF_RANGE above
        the high watermark.
        """
        if offset > self.high_watermark:
            raise range_errors.deletion_above_high_watermark(self, offset)
        if offset <= self.log_start_offset:
            return False
        self._set_log_start_offset(offset)
        self._changed[self] = None
        self.on_offsets_moved()
        self.leader_epoch_cache.truncate_from_start(offset)
        self.producer_state.on_log_start_offset_incremented(offset)
        if self.memory.is_tight:
            self.checkpoint_log_start_offset()
        return True

    def _set_log_start_offset(self, offset: int) -> None:
        self.log_start_offset = offset
        self.on_log_start_moved()

    def checkpoint_high_watermark(self) -> None:
        """Keep the high watermark for `recover`; Kafka's `replication-offset-checkpoint`."""
        self.storage.high_watermark = self.high_watermark

    def checkpoint_log_start_offset(self) -> None:
        """Keep the log start for `recover`, and free what is below: nothing can read it again."""
        self.storage.log_start_offset = self.log_start_offset
        self._local_log.release_before(self.log_start_offset)

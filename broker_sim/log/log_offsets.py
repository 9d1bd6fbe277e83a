"""The offsets that bound a log, and how they move; mirrors the watermarks of ``UnifiedLog``.

    log start offset ≤ last stable offset ≤ high watermark ≤ log end offset

             deleted │ decided │ undecided │ not on all replicas │
    ─────────────────┼─────────┼───────────┼─────────────────────┼──────▶ offsets
              log start   last stable   high watermark        log end

The high watermark and the log start live in memory; what a restarted broker knows of them is
their last checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.leader_epoch_cache import LeaderEpochCache
from broker_sim.log.local_log import LocalLog
from broker_sim.log.producer_state_manager import ProducerStateManager

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.log.segment import LogSegment
    from broker_sim.metadata.topic_partition import TopicPartition

__all__ = ["LogOffsets"]


class LogOffsets:
    """The segments, epochs and producers of a log and the offsets that follow from them.

    From outside, offsets are to be read; they move by the methods.
    """

    def __init__(
        self, topic_partition: TopicPartition, now_ms: int, producer_id_expiration_ms: int
    ) -> None:
        self.topic_partition = topic_partition
        self.log_start_offset = 0
        self.high_watermark = 0
        self.flush_point = 0
        """The offset up to which the log survives a loss of power; Kafka's recovery point."""
        self.leader_epoch_cache = LeaderEpochCache()
        self.producer_state = ProducerStateManager(topic_partition, producer_id_expiration_ms)
        self._local_log = LocalLog(now_ms)
        self._checkpointed_high_watermark = 0
        self._checkpointed_log_start_offset = 0

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.topic_partition}, "
            f"log_start_offset={self.log_start_offset}, "
            f"last_stable_offset={self.last_stable_offset}, "
            f"high_watermark={self.high_watermark}, log_end_offset={self.log_end_offset})"
        )

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
        return max(first_unstable, self.log_start_offset)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest transaction that is open or not replicated, or None."""
        first_unstable = self.producer_state.first_unstable_offset
        return None if first_unstable is None else max(first_unstable, self.log_start_offset)

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch, or None."""
        return self.leader_epoch_cache.latest_epoch

    @property
    def size_bytes(self) -> int:
        """The bytes of all batches in the log."""
        return self._local_log.size_bytes

    @property
    def segments(self) -> Sequence[LogSegment]:
        """The segments, the oldest first; to be read only."""
        return self._local_log.segments

    def position(self, offset: int) -> int:
        """Return the bytes of the log before ``offset``; a difference of two is what lies between.

        Counted since the log's begin, deleted segments included, to the begin of the batch that
        holds the offset.
        """
        return self._local_log.position(offset)

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, clamped into [log start, log end]; return it."""
        end_offset = self._local_log.log_end_offset
        high_watermark = min(max(offset, self.log_start_offset), end_offset)
        self.high_watermark = high_watermark
        self.producer_state.on_high_watermark_updated(high_watermark)
        return high_watermark

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Move the high watermark forward to ``offset``, if it is forward; True if it moved.

        Raises ValueError beyond the log's end.
        """
        if offset <= self.high_watermark:
            return False
        if offset > self._local_log.log_end_offset:
            raise ValueError(
                f"High watermark {offset} of {self.topic_partition} would exceed the log end "
                f"offset {self.log_end_offset}"
            )
        self.update_high_watermark(offset)
        return True

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Delete the records before ``offset``; True if there were any.

        Segments go with `PartitionLog.delete_old_segments`. Raises OFFSET_OUT_OF_RANGE above the
        high watermark.
        """
        if offset > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition "
                f"{self.topic_partition} since it is larger than the high watermark "
                f"{self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self._set_log_start_offset(offset)
        return True

    def _set_log_start_offset(self, offset: int) -> None:
        self.log_start_offset = offset
        self.flush_point = max(self.flush_point, offset)
        self.leader_epoch_cache.truncate_from_start(offset)
        self.producer_state.on_log_start_offset_incremented(offset)

    def checkpoint_high_watermark(self) -> None:
        """Write the high watermark to "disk"; ``replication-offset-checkpoint``."""
        self._checkpointed_high_watermark = self.high_watermark

    def checkpoint_log_start_offset(self) -> None:
        """Write the log start offset to "disk"; ``log-start-offset-checkpoint``."""
        self._checkpointed_log_start_offset = self.log_start_offset

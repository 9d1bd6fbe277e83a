"""The offsets of a log between its first record and its end, and the callbacks for their moves.

    log start offset ≤ last stable offset ≤ high watermark ≤ log end offset

             deleted │ decided │ undecided │ not on all replicas │
    ─────────────────┼─────────┼───────────┼─────────────────────┼──────▶ offsets
              log start   last stable   high watermark        log end

Part of `UnifiedLog`. The log end offset belongs to `LocalLog`, the first undecided transaction to
`ProducerStateManager`; the other two are stored here. Moving an offset updates the parts of the log that depend on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.log.leader_epoch_cache import LeaderEpochCache
    from broker_sim.log.local_log import LocalLog
    from broker_sim.log.memory import ReplicaMemory
    from broker_sim.log.producer_state_manager import ProducerStateManager
    from broker_sim.log.storage import LogStorage
    from broker_sim.metadata.topic_partition import TopicPartition

CLOSED: Final = "closed"
"""The reader of changed logs that closes them at a shutdown."""
HIGH_WATERMARKS: Final = "high watermarks"
"""The reader that checkpoints high watermarks."""
LOG_STARTS: Final = "log starts"
"""The reader that checkpoints log start offsets."""
INVARIANTS: Final = "invariants"
"""The reader that checks invariants in random runs; a program that serves clients has none."""


def _do_nothing(_topic_partition: TopicPartition) -> None:
    pass


class LogOffsets:
    """The offsets of one log."""

    __slots__ = (
        "_epochs",
        "_memory",
        "_moved",
        "_producer_state",
        "_storage",
        "high_watermark",
        "local_log",
        "log_start_offset",
        "on_log_start_moved",
        "on_moved",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        local_log: LocalLog,
        epochs: LeaderEpochCache,
        producer_state: ProducerStateManager,
        storage: LogStorage,
        memory: ReplicaMemory,
        moved: dict[LogOffsets, None],
    ) -> None:
        """Begin at 0, before recovery; the object adds itself to `moved` whenever one of its offsets moves."""
        self.topic_partition = topic_partition
        self.log_start_offset = 0
        """The first offset that a client may read."""
        self.high_watermark = 0
        """The offset below which every in-sync replica has all records."""
        self.on_moved: Callable[[], object] | None = None
        """Called after any of the offsets, the log end included, has moved; a leader sets it."""
        self.on_log_start_moved: Callable[[TopicPartition], object] = _do_nothing
        """Called after the log start offset has moved."""
        self.local_log = local_log
        """The segments; reading their `log_end_offset` directly is faster than the property here."""
        self._epochs = epochs
        self._producer_state = producer_state
        self._storage = storage
        self._memory = memory
        self._moved = moved

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.local_log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is decided and replicated."""
        first_unstable = self._producer_state.first_unstable_offset
        if first_unstable is None or first_unstable >= self.high_watermark:
            return self.high_watermark
        if first_unstable < self.log_start_offset:
            return self.local_log.base_offset_of_batch(self.log_start_offset)
        return first_unstable

    def note_moved(self) -> None:
        """Notify the listener and the readers of `ChangedLogs` that an offset has moved."""
        self._moved[self] = None
        if self.on_moved is not None:
            self.on_moved()

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, clamped into [log start, log end]; return it."""
        high_watermark = min(max(offset, self.log_start_offset), self.local_log.log_end_offset)
        self._set_high_watermark(high_watermark)
        return high_watermark

    def _set_high_watermark(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark
        self._moved[self] = None  # as `note_moved`, without a call for each fetch
        if self.on_moved is not None:
            self.on_moved()
        self._producer_state.on_high_watermark_updated(high_watermark)

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Move the high watermark to `offset` if that is forward; return whether it moved.

        Raises ValueError beyond the log's end.
        """
        if offset <= self.high_watermark:
            return False
        if offset > self.local_log.log_end_offset:
            raise ValueError(
                f"High watermark {offset} of {self.topic_partition} would exceed "
                f"the log end offset {self.log_end_offset}"
            )
        self._set_high_watermark(offset)  # above the previous one, so above the log start
        return True

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Delete the records before `offset`; return whether there were any.

        Their segments are deleted by the next `PartitionLog.delete_old_segments`. Raises OFFSET_OUT_OF_RANGE
        above the high watermark.
        """
        if offset > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.topic_partition} since"
                f" it is larger than the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.set_log_start_offset(offset)
        self.note_moved()
        self._epochs.truncate_from_start(offset)
        self._producer_state.on_log_start_offset_incremented(offset)
        if self._memory.is_tight:
            self.checkpoint_log_start_offset()
        return True

    def set_log_start_offset(self, offset: int) -> None:
        """Set the log start offset after a truncation that has already updated the other parts."""
        self.log_start_offset = offset
        self.on_log_start_moved(self.topic_partition)

    def checkpoint_high_watermark(self) -> None:
        """Store the high watermark for `PartitionLog.recover`; Kafka's `replication-offset-checkpoint`."""
        self._storage.high_watermark = self.high_watermark

    def checkpoint_log_start_offset(self) -> None:
        """Store the log start offset for `PartitionLog.recover`, and free the batches below it."""
        self._storage.log_start_offset = self.log_start_offset
        self.local_log.release_before(self.log_start_offset)


class ChangedLogs:
    """The logs of one broker whose offsets have moved, in the order in which they moved, for several readers.

    Each reader gets a log once until it moves again, so periodic work over all logs costs nothing for logs
    that have not changed.
    """

    __slots__ = ("_unread", "moved")

    def __init__(self, *readers: str) -> None:
        self.moved: dict[LogOffsets, None] = {}
        """The logs that have moved since any reader's last call; they add themselves."""
        self._unread: dict[str, dict[LogOffsets, None]] = {reader: {} for reader in readers}

    def has_news_for(self, reader: str) -> bool:
        """Whether `take` would return any logs to this reader."""
        return bool(self.moved or self._unread.get(reader))

    def take(self, reader: str) -> list[LogOffsets]:
        """Return the logs that have moved since this reader's last call.

        A new reader gets the logs that no reader has taken yet.
        """
        unread = self._unread.get(reader)
        if unread is None:
            unread = self._unread[reader] = {}
        if self.moved:
            for logs in self._unread.values():
                logs.update(self.moved)
            self.moved.clear()
        elif not unread:
            return []
        logs_moved = list(unread)
        unread.clear()
        return logs_moved

    def discard(self, log: LogOffsets) -> None:
        """Drop a deleted log."""
        self.moved.pop(log, None)
        for logs in self._unread.values():
            logs.pop(log, None)

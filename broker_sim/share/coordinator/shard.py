"""The share partitions of one partition of `__share_group_state`; mirrors `ShareCoordinatorShard`.

Records change a share partition: a snapshot of the complete state, or an update of the last snapshot. Operations
return records and an outcome. The runtime appends the records and replays them here, as it does when it loads the
log.

Errors of an operation are outcomes. As in Kafka, every outcome waits until all earlier records are committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.result import Result
from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.share.coordinator import record_messages, records
from broker_sim.share.coordinator.share_group_offset import NO_CHANGE, ShareGroupOffset
from broker_sim.share.coordinator.state_batches import combine_state_batches
from broker_sim.share.share_state import ReadState, SharePartitionKey, StateOutcome, StateSummary, WrittenState

if TYPE_CHECKING:
    from collections.abc import Container

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.records import CoordinatorRecord

NEGATIVE: Final = "The {} cannot be a negative number."
UNINITIALIZED: Final = "{} operation on uninitialized share partition not allowed."
MAX_STATE_BATCHES: Final = 20_000
"""Maximum number of state batches of a share partition: twice the maximum of the record lock limit."""
TOO_MANY_BATCHES: Final = f"A share partition may have {MAX_STATE_BATCHES} state batches."
REVERSED_BATCH: Final = "The batch from offset {} to {} ends before it begins."


@dataclass(slots=True)
class ShareCoordinatorCounters:
    """Counts of events since the broker's start; mirrors the sensors of `ShareCoordinatorMetrics`."""

    writes: int = 0
    """Number of writes, including rejected ones, and of reads that wrote a new leader epoch."""


class RedundantRecords:
    """Tracks records superseded by newer ones in a partition; mirrors `ShareCoordinatorOffsetsManager`.

    The topic is not compacted. A snapshot supersedes all earlier records of its share partition, so the records before
    the oldest of the latest snapshots are redundant.
    """

    def __init__(self) -> None:
        self._snapshots: dict[SharePartitionKey, int] = {}
        self._deleted_offset = 0

    def snapshot_written(self, key: SharePartitionKey, offset: int) -> None:
        """Record the offset of a new snapshot."""
        self._snapshots[key] = offset

    def deleted(self, key: SharePartitionKey, offset: int) -> None:
        """Record the offset of a tombstone."""
        self._snapshots.pop(key, None)
        self._deleted_offset = offset

    def end_offset(self) -> int | None:
        """Return the offset before which all records are redundant, None if there are none."""
        return min(self._snapshots.values(), default=self._deleted_offset) or None


class ShareShard:
    """The states of share partitions, by key."""

    def __init__(self, partition: int, broker: BrokerContext, counters: ShareCoordinatorCounters) -> None:
        self.partition = partition
        self.states: dict[SharePartitionKey, ShareGroupOffset] = {}
        self.leader_epochs: dict[SharePartitionKey, int] = {}
        """Highest leader epoch of any read or write, by share partition."""
        self.state_epochs: dict[SharePartitionKey, int] = {}
        """Highest state epoch of any initialization, by share partition."""
        self.redundant = RedundantRecords()
        self.pruned_offset = -1
        """Offset before which records were last deleted."""
        self._updates: dict[SharePartitionKey, int] = {}
        """Number of updates, reset by a snapshot once it reaches `_max_updates`."""
        self._broker = broker
        self._counters = counters

    def _now_ms(self) -> int:
        return self._broker.clock.wall_clock_ms()

    @property
    def _max_updates(self) -> int:
        return self._broker.config.share_coordinator_snapshot_update_records_per_snapshot

    # -- operations -----------------------------------------------------------------------------

    def initialize_state(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Result[StateOutcome]:
        """Initialize the state, replacing an existing one.

        Errors: INVALID_REQUEST, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        error = (
            self._negative(key, state_epoch=state_epoch) or self._fenced_state(key, state_epoch) or self._unknown(key)
        )
        if error is not None:
            return Result(error)
        old = self.states.get(key)
        initial_state = ShareGroupOffset.initialized(
            0 if old is None else old.snapshot_epoch + 1, state_epoch, start_offset, self._now_ms()
        )
        return Result(StateOutcome(), [records.snapshot(key, initial_state)])

    def write_state(self, key: SharePartitionKey, write: WrittenState) -> Result[StateOutcome]:
        """Write changes of the state by the leader of the share partition.

        Errors: INVALID_REQUEST (also if not initialized), FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH,
        UNKNOWN_TOPIC_OR_PARTITION. Deliberate differences: a batch that ends before it begins is rejected,
        because combining it may never end in Kafka; and more than `MAX_STATE_BATCHES` batches get
        UNKNOWN_SERVER_ERROR, which Kafka returns if the record would be too large.
        """
        self._counters.writes += 1
        error = (
            self._negative(key, write.leader_epoch, write.state_epoch)
            or self._uninitialized(key, "Write")
            or self._fenced_leader(key, write.leader_epoch)
            or self._fenced_state(key, write.state_epoch)
            or self._unknown(key)
            or _reversed_batch(write)
            or self._too_many_batches(key, write)
        )
        if error is not None:
            return Result(error)
        record = self._record(key, write, self.states[key].leader_epoch)
        return Result(StateOutcome(), [record], shares_batch=True)

    def read_state(self, key: SharePartitionKey, leader_epoch: int) -> Result[ReadState]:
        """Return the state; a new leader epoch is written first, which fences older leaders.

        Errors: INVALID_REQUEST (also if not initialized), FENCED_LEADER_EPOCH,
        UNKNOWN_TOPIC_OR_PARTITION.
        """
        error = (
            self._negative(key, leader_epoch)
            or self._uninitialized(key, "Read")
            or self._fenced_leader(key, leader_epoch)
            or self._unknown(key)
        )
        if error is not None:
            return Result(ReadState(*error))
        state = self.states[key]
        read = ReadState(
            state_epoch=state.state_epoch, start_offset=state.start_offset, state_batches=state.state_batches
        )
        if leader_epoch in {NO_CHANGE, self.leader_epochs.get(key)}:
            return Result(read)
        self._counters.writes += 1
        unchanged = WrittenState(state.state_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, ())
        return Result(read, [self._record(key, unchanged, leader_epoch)])

    def read_summary(self, key: SharePartitionKey) -> Result[StateSummary]:
        """Return offsets and counts of the share partition; the defaults if it is not initialized.

        Errors: INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION.
        """
        error = self._negative(key) or self._unknown(key)
        if error is not None:
            return Result(StateSummary(*error))
        state = self.states.get(key)
        if state is None:
            return Result(StateSummary())
        return Result(
            StateSummary(
                state_epoch=state.state_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.delivery_complete_count,
            )
        )

    def delete_state(self, key: SharePartitionKey) -> Result[StateOutcome]:
        """Delete the state, if there is one. Errors: INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION."""
        error = self._negative(key) or self._unknown(key)
        if error is not None:
            return Result(error)
        return Result(StateOutcome(), [records.tombstone(key)] if key in self.states else ())

    def _record(self, key: SharePartitionKey, write: WrittenState, leader_epoch: int) -> CoordinatorRecord:
        """Return an update record, or a snapshot record if there were enough updates."""
        state = self.states[key]
        if self._broker.release.is_at_least("4.4"):
            write = state.monotonic(write)
        if self._updates.get(key, 0) >= self._max_updates:
            now_ms = self._now_ms()
            return records.snapshot(key, state.snapshot_of(write, leader_epoch, now_ms))
        return records.update(key, state.update_of(write, leader_epoch))

    # -- checks ---------------------------------------------------------------------------------

    def _negative(self, key: SharePartitionKey, leader_epoch: int = 0, state_epoch: int = 0) -> StateOutcome | None:
        """Return the error for a negative partition, and from Kafka 4.4 on for a negative epoch."""
        has_epochs = self._broker.release.is_at_least("4.4")
        if key.partition < 0:
            what = "partition id"
        elif leader_epoch < 0 and has_epochs:
            what = "leader epoch"
        elif state_epoch < 0 and has_epochs:
            what = "state epoch"
        else:
            return None
        return StateOutcome(ErrorCode.INVALID_REQUEST, NEGATIVE.format(what))

    def _uninitialized(self, key: SharePartitionKey, operation: str) -> StateOutcome | None:
        if key not in self.states:
            return StateOutcome(ErrorCode.INVALID_REQUEST, UNINITIALIZED.format(operation))
        return None

    def _fenced_leader(self, key: SharePartitionKey, leader_epoch: int) -> StateOutcome | None:
        if leader_epoch != NO_CHANGE and self.leader_epochs.get(key, leader_epoch) > leader_epoch:
            return _failed(ErrorCode.FENCED_LEADER_EPOCH)
        return None

    def _fenced_state(self, key: SharePartitionKey, state_epoch: int) -> StateOutcome | None:
        if state_epoch != NO_CHANGE and self.state_epochs.get(key, state_epoch) > state_epoch:
            return _failed(ErrorCode.FENCED_STATE_EPOCH)
        return None

    def _unknown(self, key: SharePartitionKey) -> StateOutcome | None:
        topic = self._broker.image().topic_by_id(key.topic_id)
        if topic is None or key.partition >= len(topic.partitions):
            return _failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return None

    def _too_many_batches(self, key: SharePartitionKey, write: WrittenState) -> StateOutcome | None:
        state = self.states[key]
        count = len(write.state_batches)
        if count <= MAX_STATE_BATCHES:
            count += len(state.state_batches)
            if count <= MAX_STATE_BATCHES:
                return None
            start_offset = write.start_offset
            if start_offset == NO_CHANGE:
                start_offset = state.start_offset
            combined = combine_state_batches(state.state_batches, write.state_batches, start_offset)
            if len(combined) <= MAX_STATE_BATCHES:
                return None
        return StateOutcome(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_MANY_BATCHES)

    # -- maintenance ----------------------------------------------------------------------------

    def snapshot_cold_partitions(self) -> Result[None]:
        """Return snapshots of share partitions without a recent one, so that older records can be deleted.

        Writes nothing if the last record of every share partition is such a snapshot, since then all are idle.
        """
        if all(state.create_timestamp_ms != state.write_timestamp_ms for state in self.states.values()):
            return Result()
        now_ms = self._now_ms()
        interval_ms = self._broker.config.share_coordinator_cold_partition_snapshot_interval_ms
        return Result(
            records=[
                records.snapshot(
                    key, state._replace(snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=now_ms)
                )
                for key, state in self.states.items()
                if now_ms - state.write_timestamp_ms >= interval_ms
            ]
        )

    def topics_deleted(self, topic_ids: Container[bytes]) -> Result[None]:
        """Return tombstones of all share partitions of deleted topics."""
        return Result(records=[records.tombstone(key) for key in self.states if key.topic_id in topic_ids])

    # -- replay ---------------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply the record at that offset of the log; see `Shard`."""
        del producer_id
        if isinstance(record.key, record_messages.ShareUpdateKey):
            if record.value is not None:
                assert isinstance(record.value, record_messages.ShareUpdateValue)
                self._replay_update(records.key_of(record.key), records.update_of(record.value))
            return
        assert isinstance(record.key, record_messages.ShareSnapshotKey)
        key = records.key_of(record.key)
        if record.value is None:
            for by_key in (self.states, self.leader_epochs, self.state_epochs, self._updates):
                by_key.pop(key, None)
            self.redundant.deleted(key, record_offset)
            return
        assert isinstance(record.value, record_messages.ShareSnapshotValue)
        state = records.snapshot_of(record.value)
        self._raise_epoch(self.leader_epochs, key, state.leader_epoch)
        self._raise_epoch(self.state_epochs, key, state.state_epoch)
        self.states[key] = state
        if self._updates.get(key, 0) >= self._max_updates:
            self._updates[key] = 0
        self.redundant.snapshot_written(key, record_offset)

    def _replay_update(self, key: SharePartitionKey, update: ShareGroupOffset) -> None:
        self._raise_epoch(self.leader_epochs, key, update.leader_epoch)
        state = self.states.get(key)
        self.states[key] = update if state is None else state.merged(update)
        self._updates[key] = self._updates.get(key, 0) + 1

    @staticmethod
    def _raise_epoch(epochs: dict[SharePartitionKey, int], key: SharePartitionKey, to: int) -> None:
        epochs[key] = max(epochs.get(key, to), to)

    def replay_marker(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        """Do nothing: this topic has no transactional records."""


def _reversed_batch(write: WrittenState) -> StateOutcome | None:
    for batch in write.state_batches:
        if batch.last_offset < batch.first_offset:
            text = REVERSED_BATCH.format(batch.first_offset, batch.last_offset)
            return StateOutcome(ErrorCode.INVALID_REQUEST, text)
    return None


def _failed(error_code: ErrorCode) -> StateOutcome:
    return StateOutcome(error_code, ERROR_TEXTS[error_code])

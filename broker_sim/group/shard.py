"""The groups of one partition of `__consumer_offsets`; mirrors `GroupCoordinatorShard`.

What changes a group is a record. `write` appends the records, and as soon as the leader has them they
are replayed into the state, as those that loading reads from the log are. Answers wait until the
in-sync replicas have the records, as in `CoordinatorRuntime`.

Deliberate difference: each write is one batch, apart from commits of offsets (`WriteBuffer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.offsets import OffsetStore
from broker_sim.group.records import decode_batch
from broker_sim.group.transactional_offsets import TransactionalOffsets
from broker_sim.group.write_buffer import WriteBuffer
from broker_sim.protocol.record_batch import NO_PRODUCER_ID, parse_header
from broker_sim.protocol.records import read_end_txn_marker
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.group.classic.classic_groups import ClassicGroups
    from broker_sim.group.consumer.consumer_groups import ConsumerGroups
    from broker_sim.group.environment import GroupEnvironment
    from broker_sim.group.group import Group
    from broker_sim.group.migration import Migration
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.write_buffer import TransactionMarker, VerifiedTransaction

__all__ = ["GroupShard", "coordinator_error"]

log = get_logger(__name__)

_COORDINATOR_ERRORS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(error_code: ErrorCode) -> ErrorCode:
    """Return what a client is told of a failed append; mirrors `CoordinatorOperationExceptionHelper`."""
    return _COORDINATOR_ERRORS.get(error_code, error_code)


def _as_told(on_done: Callable[[ErrorCode], object]) -> Callable[[ErrorCode], object]:
    """Return what gets the error of an append and gives `on_done` what clients are told of it."""
    return lambda error_code: on_done(coordinator_error(error_code))


class GroupShard:
    """The groups and offsets of one partition, while this broker leads it in `leader_epoch`.

    The coordinator completes a new shard with the two kinds of groups, `classic` and `consumer`, and
    with what moves groups between them.
    """

    classic: ClassicGroups
    consumer: ConsumerGroups
    migration: Migration

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        environment: GroupEnvironment,
        reload: Callable[[], object] | None = None,
    ) -> None:
        """`reload()` is called when the state has records that could not be appended."""
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.environment = environment
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.transactional_offsets = TransactionalOffsets()
        self.is_active = True
        """False from when the broker has stopped to lead the partition."""
        self.log = log.bind(
            environment.clock, node=f"broker-{environment.broker_id}", shard=partition
        )
        self._storage = environment.storage
        self._reload = reload
        self._buffer = WriteBuffer(partition, environment, self._fail)
        self._end_offset = 0

    @property
    def high_watermark(self) -> int:
        """The offset below which all records are committed."""
        return self._storage.high_watermark(self.partition)

    @property
    def is_committed(self) -> bool:
        """Whether all that was written is committed, so that a write without records is done at once."""
        # Records that wait in the buffer are replayed, so they count.
        return self.is_active and self._end_offset <= self._storage.high_watermark(self.partition)

    def write(
        self,
        records: Sequence[GroupRecord],
        on_done: Callable[[ErrorCode], object],
        *,
        replay: bool = True,
        on_appended: Callable[[], object] | None = None,
    ) -> None:
        """Append the records and replay them at once; `on_done(NONE)` is called when they are committed.

        That may be before this returns. `on_done` gets an error as clients are told it
        (`coordinator_error`): either the append failed, and then nothing was replayed; or the replicas
        did not get the records in `offsets.commit.timeout.ms` (COORDINATOR_NOT_AVAILABLE), or another
        broker has become the leader (NOT_COORDINATOR), and then the state stays. Without records it is
        called when all that was written before is committed. `replay=False` is for records that say
        what the state is already, such as those of classic groups, or what `on_appended()` makes of
        it, which is called before `on_done` and only if the leader has appended.
        """
        if not records:
            self._await_written(on_done)
            return

        def appended(last_offset: int) -> None:
            if replay:
                self._replay_all(records, last_offset + 1 - len(records))
            else:
                self._end_offset = last_offset + 1
            if on_appended is not None:
                on_appended()

        self._buffer.append(records, appended, _as_told(on_done))

    def _await_written(self, on_done: Callable[[ErrorCode], object]) -> None:
        """Call `on_done` when all that was written before is committed; see `write`."""
        self._buffer.flush()
        if self.is_committed:
            on_done(ErrorCode.NONE)
        elif not self.is_active:
            on_done(ErrorCode.NOT_COORDINATOR)
        else:
            timeout_ms = self.environment.config.offsets_commit_timeout_ms
            self._storage.await_committed(
                self.partition, self._end_offset, timeout_ms, _as_told(on_done)
            )

    def write_transactional(
        self,
        records: Sequence[GroupRecord],
        transaction: VerifiedTransaction,
        on_done: Callable[[ErrorCode], object],
    ) -> None:
        """Append the records as a batch of the transaction and replay them; `on_done` as in `write`.

        The batch fails if the producer's epoch is over (INVALID_PRODUCER_EPOCH), or if nothing is known
        of the transaction and the guard is not the newest one (INVALID_TXN_STATE).
        """
        if not records:
            self.write(records, on_done)
            return

        def appended(last_offset: int) -> None:
            first_offset = last_offset + 1 - len(records)
            self._replay_all(records, first_offset, transaction.producer_id)

        self._buffer.append(records, appended, _as_told(on_done), transaction)

    def complete_transaction(
        self, marker: TransactionMarker, on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Append the marker that ends a producer's transaction, and take in what it commits.

        Mirrors `CoordinatorRuntime.completeTransaction`. `on_done` gets the error of the append as it is.
        """

        def appended(offset: int) -> None:
            self.replay_marker(marker.producer_id, offset, is_commit=marker.is_commit)

        self._buffer.append_marker(marker, appended, on_done)

    def write_soon(
        self, records: Sequence[GroupRecord], on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Do the same for records that are appended together with others.

        They are replayed at once. Should the append fail after that, the partition is loaded again.
        """
        if not records:
            self.write(records, on_done)
            return
        done = _as_told(on_done)
        error_code = self._storage.check_append(self.partition)
        if error_code:
            done(error_code)
            return
        if not self._buffer.add(records, done):
            return
        self._replay_all(records, self._buffer.end_offset - len(records))

    def _fail(self) -> None:
        if self.is_active and self._reload is not None:
            self.log.info("groups_reloaded", reason="records could not be appended")
            self._reload()

    def load(self, batch: bytes) -> int:
        """Take in a batch of the log, of records or a marker; returns how many records it has."""
        header = parse_header(batch)
        if header.is_control:
            if not header.records_count:
                return 0
            marker = read_end_txn_marker(batch)
            self.replay_marker(header.producer_id, header.last_offset, is_commit=marker.is_commit)
            return 1
        records = 0
        for offset, record in decode_batch(batch):
            self.replay(record, offset, header.producer_id)
            records += 1
        return records

    def replay_marker(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        """Take in the marker at that offset of the log: the producer's offsets count now, or never will.

        Of offsets committed in a transaction and outside of it, those whose record is the last one count.
        """
        self._end_offset = marker_offset + 1
        for key, offset in self.transactional_offsets.end(producer_id).items():
            if is_commit and not self.offsets.materialise(
                key, offset, marker_offset, self.high_watermark
            ):
                self.log.info("transactional_offset_skipped", group=key[0], topic=key[1])

    def _replay_all(
        self, records: Sequence[GroupRecord], first_offset: int, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        for offset, record in enumerate(records, first_offset):
            self.replay(record, offset, producer_id)

    def replay(
        self, record: GroupRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        """Take in a record that is in the log at that offset, in a transaction if a producer is named."""
        self._end_offset = record_offset + 1
        key, value = record.key, record.value
        if isinstance(key, record_messages.OffsetCommitKey):
            assert value is None or isinstance(value, record_messages.OffsetCommitValue)
            self._replay_offset(key, value, record_offset, producer_id)
        elif isinstance(key, record_messages.LegacyOffsetCommitKey):
            assert value is None or isinstance(value, record_messages.LegacyOffsetCommitValue)
            self._replay_legacy_offset(key, value, record_offset, producer_id)
        elif isinstance(key, record_messages.GroupMetadataKey):
            self.classic.replay(record)
        else:
            self.consumer.replay(record)

    def _replay_offset(
        self,
        key: record_messages.OffsetCommitKey,
        value: record_messages.OffsetCommitValue | None,
        record_offset: int,
        producer_id: int,
    ) -> None:
        if value is not None and key.group not in self.groups:
            # Who commits without being a member has a "simple" group; mirrors `OffsetMetadataManager.replay`.
            self.classic.get_or_create(key.group)
        if value is not None and producer_id != NO_PRODUCER_ID:
            self.transactional_offsets.replay(producer_id, key, value, record_offset)
            return
        if value is None:
            self.transactional_offsets.remove(key.group, key.topic, key.partition)
        self.offsets.replay(key, value, record_offset, self.high_watermark)

    def _replay_legacy_offset(
        self,
        key: record_messages.LegacyOffsetCommitKey,
        value: record_messages.LegacyOffsetCommitValue | None,
        record_offset: int,
        producer_id: int,
    ) -> None:
        converted: record_messages.OffsetCommitValue | None = None
        if value is not None:
            converted = record_messages.OffsetCommitValue(
                value.offset, -1, value.metadata, value.commit_timestamp
            )
        self._replay_offset(
            record_messages.OffsetCommitKey(key.group, key.topic, key.partition),
            converted,
            record_offset,
            producer_id,
        )

    def on_loaded(self) -> None:
        """Begin to work after the whole log was replayed."""
        for group in list(self.groups.values()):
            group.on_loaded()

    def on_unloaded(self) -> None:
        """Stop: another broker is the leader now, or the topic is gone."""
        self.is_active = False
        for group in list(self.groups.values()):
            group.on_unloaded()

"""The transactional ids of the partitions that this broker leads; mirrors `TransactionStateManager`.

A change is one record in the id's partition of `__transaction_state`. It is in force when the in-sync
replicas have the record.

Deliberate difference: a record that the replicas have in time counts as written, although the ISR may
have become too small right after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.coordinator.led_partitions import LedPartitions
from broker_sim.coordinator.records import CoordinatorRecord, size_in_batch
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES
from broker_sim.runtime.event_log import get_logger
from broker_sim.transaction import record_messages
from broker_sim.transaction.metadata import TransactionMetadata, TxnTransitMetadata
from broker_sim.transaction.records import (
    decode_batch,
    encode_batch,
    encode_record,
    encode_values,
    metadata_of,
    tombstone_of,
)
from broker_sim.transaction.state import TransactionState, TransactionVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker_sim.transaction.environment import TransactionEnvironment

__all__ = ["TRANSACTION_VERSION_FEATURE", "TransactionPartition", "TransactionStateManager"]

log = get_logger(__name__)

TRANSACTION_VERSION_FEATURE: Final = "transaction.version"

_COORDINATOR_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What is told of a failed append."""


class TransactionPartition:
    """The transactional ids of one partition, while this broker leads it in `leader_epoch`."""

    __slots__ = ("leader_epoch", "partition", "transactions")

    def __init__(self, partition: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        """Leaders of other partitions know it as the coordinator epoch."""
        self.transactions: dict[str, TransactionMetadata] = {}


class _Expired(NamedTuple):
    transactional_id: str
    producer_epoch: int


class TransactionStateManager:
    """Reads and writes transactional ids. Thread rule: the broker's loop."""

    def __init__(
        self,
        environment: TransactionEnvironment,
        on_loaded: Callable[[TransactionPartition], object],
        on_unloaded: Callable[[int], object],
    ) -> None:
        """`on_loaded(partition)` and `on_unloaded(number)` follow the roles of the broker."""
        self.environment = environment
        self.partitions: LedPartitions[TransactionPartition] = LedPartitions(
            TRANSACTION_STATE_TOPIC, environment.broker_id, environment.call_later, self
        )
        self._on_loaded = on_loaded
        self._on_unloaded = on_unloaded
        self._log = log.bind(environment.clock, node=f"broker-{environment.broker_id}")

    @property
    def version_level(self) -> TransactionVersion:
        """The finalized level of `transaction.version`."""
        features = self.environment.image().features
        return TransactionVersion(features.get(TRANSACTION_VERSION_FEATURE, 0))

    # -- look-up --------------------------------------------------------------------------------

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that the id is in, or will be."""
        environment = self.environment
        return self.partitions.partition_for(
            transactional_id, environment.config.transaction_state_log_num_partitions
        )

    def partition_of(self, transactional_id: str) -> TransactionPartition:
        """Return the id's partition. Raises `ApiError`: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR."""
        return self.partitions.get(self.partition_for(transactional_id))

    def find(self, transactional_id: str, coordinator_epoch: int) -> TransactionMetadata:
        """Return what is known of an id while the coordinator's epoch stays the same.

        Raises `ApiError` as `partition_of`, and NOT_COORDINATOR in another epoch or without the id.
        """
        partition = self.partition_for(transactional_id)
        return self.find_in(partition, transactional_id, coordinator_epoch)

    def find_in(
        self, partition: int, transactional_id: str, coordinator_epoch: int
    ) -> TransactionMetadata:
        """Do the same for an id whose partition is known."""
        led = self.partitions.get(partition)
        metadata = led.transactions.get(transactional_id)
        if metadata is None or led.leader_epoch != coordinator_epoch:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        return metadata

    def each(self) -> Iterator[TransactionMetadata]:
        """Iterate over all ids of the loaded partitions; they may change meanwhile."""
        for partition in self.partitions.loaded():
            yield from list(partition.transactions.values())

    # -- roles ----------------------------------------------------------------------------------

    def load(self, partition: int, leader_epoch: int) -> TransactionPartition:
        """Return what the partition's log holds; see `PartitionOwner`."""
        loaded = TransactionPartition(partition, leader_epoch)
        transactions = loaded.transactions
        for batch in self.environment.storage.read(partition):
            for _, (key, value, _) in decode_batch(batch):
                assert isinstance(key, record_messages.TransactionLogKey)
                if value is None:
                    transactions.pop(key.transactional_id, None)
                else:
                    assert isinstance(value, record_messages.TransactionLogValue)
                    transactions[key.transactional_id] = TransactionMetadata(
                        key.transactional_id, metadata_of(value)
                    )
        self._log.info(
            "transactions_loaded",
            partition=partition,
            leader_epoch=leader_epoch,
            transactional_ids=len(transactions),
        )
        return loaded

    def loaded(self, partition: TransactionPartition) -> None:
        """Let what is prepared be completed."""
        self._on_loaded(partition)

    def reelected(self, _partition: TransactionPartition, _leader_epoch: int) -> bool:
        """Have the partition loaded again: markers carry the coordinator's epoch."""
        return False

    def unloaded(self, partition: TransactionPartition) -> None:
        """Stop to work for the partition's ids."""
        self._log.info(
            "transactions_unloaded",
            partition=partition.partition,
            transactional_ids=len(partition.transactions),
        )
        self._on_unloaded(partition.partition)

    # -- changes --------------------------------------------------------------------------------

    def append(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        values: TxnTransitMetadata,
        on_done: Callable[[ErrorCode], object],
        *,
        keep_pending_on: ErrorCode | None = None,
    ) -> None:
        """Write a prepared change, and take it in; `on_done` is called after that, maybe at once.

        It gets COORDINATOR_NOT_AVAILABLE where the replicas did not get the record in the
        transaction's timeout, NOT_COORDINATOR where another broker, or this one in another epoch, is
        the coordinator. After an error the change is not pending any more, apart from
        `keep_pending_on`, after which the caller writes it again. UNSUPPORTED_VERSION: what a client of
        `TV_2` did cannot be written at level 0; as in Kafka the change then stays pending.
        """
        environment = self.environment
        level = self.version_level
        partition = self.partition_for(transactional_id)
        try:
            self.find_in(partition, transactional_id, coordinator_epoch)
        except ApiError as error:
            on_done(error.error_code)
            return
        if values.client_version and not level.log_value_version:
            on_done(ErrorCode.UNSUPPORTED_VERSION)
            return

        def done(error_code: ErrorCode) -> None:
            error_code = _COORDINATOR_ERRORS.get(error_code, error_code)
            try:
                metadata = self.find_in(partition, transactional_id, coordinator_epoch)
            except ApiError as error:
                on_done(error_code or error.error_code)
                return
            if not error_code:
                metadata.complete_transition_to(values)
            elif error_code is not keep_pending_on:
                metadata.pending_state = None
            on_done(error_code)

        now_ms = environment.clock.wall_clock_ms()
        batch = encode_values(transactional_id, values, level, now_ms)
        environment.storage.append(partition, batch, values.timeout_ms, _ignore_offset, done)

    # -- expiry ---------------------------------------------------------------------------------

    def remove_expired_ids(self) -> None:
        """Forget the ids that nothing has changed for `transactional.id.expiration.ms`."""
        now_ms = self.environment.clock.wall_clock_ms()
        before_ms = now_ms - self.environment.config.transactional_id_expiration_ms
        for partition in self.partitions.loaded():
            expired = [
                metadata
                for metadata in partition.transactions.values()
                if metadata.pending_state is None
                and metadata.state.is_complete
                and metadata.values.last_update_ms <= before_ms
            ]
            for some in self._batches(partition, expired):
                self._write_tombstones(partition, some, now_ms)

    def _batches(
        self, partition: TransactionPartition, expired: Iterable[TransactionMetadata]
    ) -> Iterator[list[TransactionMetadata]]:
        """Yield the ids in parts whose tombstones the topic's largest batch has room for."""
        room = self.environment.storage.max_batch_bytes(partition.partition) - BATCH_OVERHEAD_BYTES
        part: list[TransactionMetadata] = []
        size_bytes = 0
        for metadata in expired:
            tombstone = encode_record(tombstone_of(metadata.transactional_id), 0)
            if part and size_bytes + size_in_batch(tombstone) > room:
                yield part
                part, size_bytes = [], 0
            part.append(metadata)
            size_bytes += size_in_batch(tombstone)
        if part:
            yield part

    def _write_tombstones(
        self, partition: TransactionPartition, expired: list[TransactionMetadata], now_ms: int
    ) -> None:
        tombstones: list[CoordinatorRecord] = []
        removed: list[_Expired] = []
        for metadata in expired:
            values = metadata.prepare_dead()
            tombstones.append(tombstone_of(metadata.transactional_id))
            removed.append(_Expired(metadata.transactional_id, values.producer_epoch))

        def done(error_code: ErrorCode) -> None:
            for transactional_id, producer_epoch in removed:
                metadata = partition.transactions.get(transactional_id)
                if metadata is None:
                    continue
                if (
                    not error_code
                    and metadata.pending_state is TransactionState.DEAD
                    and metadata.producer_epoch == producer_epoch
                ):
                    del partition.transactions[transactional_id]
                else:
                    metadata.pending_state = None
            self._log.info(
                "transactional_ids_expired",
                partition=partition.partition,
                transactional_ids=len(removed),
                error=error_code.name,
            )

        self.environment.storage.append(
            partition.partition,
            encode_batch(tombstones, now_ms),
            self.environment.config.request_timeout_ms,
            _ignore_offset,
            done,
        )


def _ignore_offset(_last_offset: int) -> None:
    """Do nothing when a record is appended: it counts when it is replicated."""

"""The transactional ids of the partitions that this broker leads; mirrors `TransactionStateManager`.

A change is one record in the id's partition of `__transaction_state`. It is in force when the in-sync
replicas have the record.

Deliberate difference: a record that the replicas have in time counts as written, although the ISR may
have become too small right after.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.coordinator.records import CoordinatorRecord, size_in_batch
from broker_sim.coordinator.result import Result
from broker_sim.coordinator.runtime import CoordinatorRuntime
from broker_sim.coordinator.storage import CoordinatorTopic
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.feature_names import TRANSACTION_VERSION
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, NO_PRODUCER_ID, NO_SEQUENCE
from broker_sim.runtime.event_log import get_logger
from broker_sim.transaction import record_messages
from broker_sim.transaction.metadata import TransactionMetadata, TxnTransitMetadata
from broker_sim.transaction.records import metadata_of, record_of, serde, tombstone_of
from broker_sim.transaction.state import TransactionState, TransactionVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.context import CoordinatorContext
    from broker_sim.coordinator.result import ShardRuntime

log = get_logger(__name__)


class TransactionPartition:
    """The transactional ids of one partition that this broker leads."""

    __slots__ = ("_runtime", "partition", "transactions")

    def __init__(self, partition: int, runtime: ShardRuntime) -> None:
        self.partition = partition
        self.transactions: dict[str, TransactionMetadata] = {}
        self._runtime = runtime

    @property
    def leader_epoch(self) -> int:
        """The epoch of its leader, which leaders of other partitions know as the coordinator epoch."""
        return self._runtime.leader_epoch

    def replay(self, record: CoordinatorRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply a record of the log: the values of an id, or its removal."""
        del record_offset, producer_id
        key, value = record.key, record.value
        assert isinstance(key, record_messages.TransactionLogKey)
        if value is None:
            self.transactions.pop(key.transactional_id, None)
            return
        assert isinstance(value, record_messages.TransactionLogValue)
        metadata = TransactionMetadata(key.transactional_id, metadata_of(value))
        self.transactions[key.transactional_id] = metadata

    def replay_marker(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        """Do nothing: no transaction writes to this topic."""


class _Expired(NamedTuple):
    transactional_id: str
    producer_epoch: int


class TransactionStateManager:
    """Reads and writes transactional ids. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker: BrokerContext,
        on_loaded: Callable[[TransactionPartition], object],
        on_unloaded: Callable[[int], object],
    ) -> None:
        """`on_loaded(partition)` and `on_unloaded(number)` follow the roles of the broker."""
        self.broker = broker
        config = broker.config
        self._storage = broker.storage(TRANSACTION_STATE_TOPIC, config.transaction_state_log_load_buffer_size)
        topic = CoordinatorTopic(
            name=TRANSACTION_STATE_TOPIC,
            storage=self._storage,
            default_partitions=config.transaction_state_log_num_partitions,
            serde=serde,
            codec=CompressionCodec.NONE,
            timeout_ms=config.request_timeout_ms,
            base_sequence=NO_SEQUENCE,
            # Markers carry the coordinator's epoch.
            keeps_shards_when_reelected=False,
        )
        self.runtime: CoordinatorRuntime[TransactionPartition] = CoordinatorRuntime(broker, topic, self)
        self._on_loaded = on_loaded
        self._on_unloaded = on_unloaded
        self._log = log.bind(broker.clock, node=f"broker-{broker.broker_id}")

    @property
    def version_level(self) -> TransactionVersion:
        """The finalized level of `transaction.version`."""
        features = self.broker.image().features
        return TransactionVersion(features.get(TRANSACTION_VERSION, 0))

    # -- look-up --------------------------------------------------------------------------------

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that the id is in, or will be."""
        return self.runtime.partition_for(transactional_id)

    def partition_of(self, transactional_id: str) -> TransactionPartition:
        """Return the id's partition. Raises `ApiError`: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR."""
        return self.runtime.find(transactional_id).shard

    def find_in(self, partition: int, transactional_id: str, coordinator_epoch: int) -> TransactionMetadata:
        """Return the metadata of an id while the coordinator's epoch stays the same.

        Raises `ApiError` as `partition_of`, and NOT_COORDINATOR in another epoch or without the id.
        """
        led = self.runtime.get(partition).shard
        metadata = led.transactions.get(transactional_id)
        if metadata is None or led.leader_epoch != coordinator_epoch:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        return metadata

    def each(self) -> Iterator[TransactionMetadata]:
        """Iterate over all ids of the loaded partitions; they may change meanwhile."""
        for partition in self.loaded_partitions():
            yield from list(partition.transactions.values())

    def loaded_partitions(self) -> list[TransactionPartition]:
        """Return the loaded partitions in the order of their numbers."""
        return [context.shard for context in self.runtime.loaded()]

    # -- the runtime's shards: see `ShardOwner` ---------------------------------------------------

    def make_shard(self, partition: int, runtime: ShardRuntime) -> TransactionPartition:
        """Return a partition without ids."""
        return TransactionPartition(partition, runtime)

    def loaded(self, context: CoordinatorContext[TransactionPartition]) -> None:
        """Complete the prepared transactions of a loaded partition."""
        self._log.info(
            "transactions_loaded",
            partition=context.partition,
            leader_epoch=context.leader_epoch,
            transactional_ids=len(context.shard.transactions),
        )
        self._on_loaded(context.shard)

    def unloaded(self, context: CoordinatorContext[TransactionPartition]) -> None:
        """Stop working for the partition's ids."""
        self._log.info(
            "transactions_unloaded", partition=context.partition, transactional_ids=len(context.shard.transactions)
        )
        self._on_unloaded(context.partition)

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
        level = self.version_level
        partition = self.partition_for(transactional_id)
        try:
            self.find_in(partition, transactional_id, coordinator_epoch)
            context = self.runtime.get(partition)
        except ApiError as error:
            on_done(error.error_code)
            return
        if values.client_version and not level.log_value_version:
            on_done(ErrorCode.UNSUPPORTED_VERSION)
            return

        def settled(error_code: ErrorCode) -> None:
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

        record = record_of(transactional_id, values, level)
        result: Result[None] = Result(records=[record], replays=False, timeout_ms=values.timeout_ms, on_settled=settled)
        context.carry_out(result)

    # -- expiry ---------------------------------------------------------------------------------

    def remove_expired_ids(self) -> None:
        """Forget the ids that were not changed for `transactional.id.expiration.ms`."""
        now_ms = self.broker.clock.wall_clock_ms()
        before_ms = now_ms - self.broker.config.transactional_id_expiration_ms
        for context in self.runtime.loaded():
            expired = [
                metadata
                for metadata in context.shard.transactions.values()
                if metadata.pending_state is None
                and metadata.state.is_complete
                and metadata.values.last_update_ms <= before_ms
            ]
            for some in self._batches(context.partition, expired):
                context.perform(partial(self._forget, context.shard, some))

    def _batches(self, partition: int, expired: Iterable[TransactionMetadata]) -> Iterator[list[TransactionMetadata]]:
        """Yield the ids in parts whose tombstones the topic's largest batch has room for."""
        room = self._storage.max_batch_bytes(partition) - BATCH_OVERHEAD_BYTES
        part: list[TransactionMetadata] = []
        size_bytes = 0
        for metadata in expired:
            tombstone = serde.encode_record(tombstone_of(metadata.transactional_id), 0)
            if part and size_bytes + size_in_batch(tombstone) > room:
                yield part
                part, size_bytes = [], 0
            part.append(metadata)
            size_bytes += size_in_batch(tombstone)
        if part:
            yield part

    def _forget(self, partition: TransactionPartition, expired: list[TransactionMetadata]) -> Result[None]:
        """Return the tombstones of ids, which are gone once these are committed."""
        tombstones: list[CoordinatorRecord] = []
        removed: list[_Expired] = []
        for metadata in expired:
            values = metadata.prepare_dead()
            tombstones.append(tombstone_of(metadata.transactional_id))
            removed.append(_Expired(metadata.transactional_id, values.producer_epoch))

        def settled(error_code: ErrorCode) -> None:
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

        return Result(records=tombstones, replays=False, on_settled=settled)

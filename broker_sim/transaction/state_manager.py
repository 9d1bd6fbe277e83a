"""The transactional ids of the partitions that this broker leads; mirrors `TransactionStateManager`.

Each change is one record in the id's partition of `__transaction_state`, and takes effect when the record
is committed.

Deliberate difference: a record replicated in time counts as committed, even if the ISR falls below
`min.insync.replicas` right afterwards.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

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
        """The leader epoch of the partition, sent in markers as the coordinator epoch."""
        return self._runtime.leader_epoch

    def replay(self, record: CoordinatorRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply a record of the log: the new values of an id, or its tombstone."""
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
        """Do nothing: this topic has no transactional records."""


class TransactionStateManager:
    """Looks up, writes and expires transactional ids. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker: BrokerContext,
        on_loaded: Callable[[TransactionPartition], object],
        on_unloaded: Callable[[int], object],
    ) -> None:
        """`on_loaded(partition)` is called after loading, `on_unloaded(number)` after the broker resigned."""
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
        """Return the partition number of `__transaction_state` that the id maps to."""
        return self.runtime.partition_for(transactional_id)

    def partition_of(self, transactional_id: str) -> TransactionPartition:
        """Return the id's loaded partition. Raises `ApiError`: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR."""
        return self.runtime.find(transactional_id).shard

    def find_in(self, partition: int, transactional_id: str, coordinator_epoch: int) -> TransactionMetadata:
        """Return the metadata of an id, if the coordinator epoch is still `coordinator_epoch`.

        Raises `ApiError` as `partition_of`, and NOT_COORDINATOR if the epoch differs or the id is unknown.
        """
        loaded_partition = self.runtime.get(partition).shard
        metadata = loaded_partition.transactions.get(transactional_id)
        if metadata is None or loaded_partition.leader_epoch != coordinator_epoch:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        return metadata

    def each(self) -> Iterator[TransactionMetadata]:
        """Yield all ids of the loaded partitions; ids may be added or removed during the iteration."""
        for partition in self.loaded_partitions():
            yield from list(partition.transactions.values())

    def loaded_partitions(self) -> list[TransactionPartition]:
        """Return the loaded partitions, ordered by number."""
        return [context.shard for context in self.runtime.loaded()]

    # -- the runtime's shards: see `ShardOwner` ---------------------------------------------------

    def make_shard(self, partition: int, runtime: ShardRuntime) -> TransactionPartition:
        """Return a new partition without ids."""
        return TransactionPartition(partition, runtime)

    def loaded(self, context: CoordinatorContext[TransactionPartition]) -> None:
        """Report a loaded partition to the coordinator, which completes its prepared transactions."""
        self._log.info(
            "transactions_loaded",
            partition=context.partition,
            leader_epoch=context.leader_epoch,
            transactional_ids=len(context.shard.transactions),
        )
        self._on_loaded(context.shard)

    def unloaded(self, context: CoordinatorContext[TransactionPartition]) -> None:
        """Report to the coordinator that this broker no longer serves the partition's ids."""
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
        """Write a prepared change, and apply it when it is committed; then call `on_done`.

        Errors: COORDINATOR_NOT_AVAILABLE if the record was not replicated within the transaction's timeout;
        NOT_COORDINATOR if another broker, or this one in another epoch, is the coordinator;
        UNSUPPORTED_VERSION if a `TV_2` change cannot be written at level 0 (as in Kafka, the change then
        stays pending). After any other error the change is dropped, except after `keep_pending_on`,
        which the caller retries. `on_done` may be called before this returns.
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
        """Write tombstones for ids that have been idle for `transactional.id.expiration.ms`."""
        now_ms = self.broker.clock.wall_clock_ms()
        before_ms = now_ms - self.broker.config.transactional_id_expiration_ms
        for context in self.runtime.loaded():
            expired_ids = [
                metadata
                for metadata in context.shard.transactions.values()
                if metadata.pending_state is None
                and metadata.state.is_complete
                and metadata.values.last_update_ms <= before_ms
            ]
            for batch in self._batches(context.partition, expired_ids):
                context.perform(partial(self._remove_expired, context.shard, batch))

    def _batches(self, partition: int, expired: Iterable[TransactionMetadata]) -> Iterator[list[TransactionMetadata]]:
        """Split the ids so that the tombstones of each part fit into one batch of the topic."""
        room = self._storage.max_batch_bytes(partition) - BATCH_OVERHEAD_BYTES
        batch: list[TransactionMetadata] = []
        size_bytes = 0
        for metadata in expired:
            tombstone = serde.encode_record(tombstone_of(metadata.transactional_id), 0)
            if batch and size_bytes + size_in_batch(tombstone) > room:
                yield batch
                batch, size_bytes = [], 0
            batch.append(metadata)
            size_bytes += size_in_batch(tombstone)
        if batch:
            yield batch

    def _remove_expired(self, partition: TransactionPartition, expired: list[TransactionMetadata]) -> Result[None]:
        """Return the tombstones of the ids; the ids are removed once these are committed."""
        tombstones: list[CoordinatorRecord] = []
        epochs: dict[str, int] = {}
        for metadata in expired:
            epochs[metadata.transactional_id] = metadata.prepare_dead().producer_epoch
            tombstones.append(tombstone_of(metadata.transactional_id))

        def settled(error_code: ErrorCode) -> None:
            for transactional_id, producer_epoch in epochs.items():
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
                transactional_ids=len(epochs),
                error=error_code.name,
            )

        return Result(records=tombstones, replays=False, on_settled=settled)

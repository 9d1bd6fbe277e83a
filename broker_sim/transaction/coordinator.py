"""The transaction coordinator of one broker; mirrors `TransactionCoordinator`.

Each partition of `__transaction_state` that the broker leads makes it the coordinator of the
transactional ids in it. A new leader loads the partition before it answers, and completes the
transactions whose end had been decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from broker_sim.runtime.event_log import get_logger
from broker_sim.transaction.end_transaction import EndOfTransaction, prepare_end
from broker_sim.transaction.marker_channel import PendingCompleteTxn, TransactionMarkerChannelManager
from broker_sim.transaction.metadata import TransactionMetadata, TxnTransitMetadata, is_epoch_exhausted
from broker_sim.transaction.state import TransactionState, TransactionVersion
from broker_sim.transaction.state_manager import TransactionStateManager

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.metadata import ImageChanges, MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.protocol import messages
    from broker_sim.runtime.inter_broker import InterBrokerSender
    from broker_sim.transaction.state_manager import TransactionPartition

    OnProducer = Callable[[ErrorCode, int, int], object]

log = get_logger(__name__)


class ProducerIdAndEpoch(NamedTuple):
    """Producer id and epoch as a producer states them."""

    producer_id: int
    epoch: int


class TransactionCoordinator:
    """Serves the transactional ids of this broker. Thread rule: the broker's loop.

    Callbacks are called once, now or when the replicas have what was written. Each error is the code
    that clients of the newest versions get.
    """

    def __init__(
        self,
        broker: BrokerContext,
        next_producer_id: Callable[[], int | None],
        markers: InterBrokerSender[messages.WriteTxnMarkersRequest, messages.WriteTxnMarkersResponse],
    ) -> None:
        """`next_producer_id()` returns an id that no other producer has, None while there is none."""
        self.broker = broker
        self.states = TransactionStateManager(broker, self._loaded, self._unloaded)
        self.markers = TransactionMarkerChannelManager(broker, self.states, markers)
        self._next_producer_id = next_producer_id
        self._log = log.bind(broker.clock, node=f"broker-{broker.broker_id}")

    def _now_ms(self) -> int:
        return self.broker.clock.wall_clock_ms()

    def _new_producer_id(self) -> int:
        producer_id = self._next_producer_id()
        if producer_id is None:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return producer_id

    # -- roles ----------------------------------------------------------------------------------

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Follow new metadata."""
        self.states.runtime.follow(changes, image)
        self.markers.on_image()

    def _loaded(self, partition: TransactionPartition) -> None:
        for metadata in list(partition.transactions.values()):
            if metadata.state.is_prepared:
                self.markers.add(self._prepare_markers(partition, metadata))

    def _unloaded(self, partition: int) -> None:
        self.markers.remove_markers_of(partition)

    def shutdown(self) -> None:
        """Drop everything, as a broker that is killed."""
        self.states.runtime.shutdown()

    def _prepare_markers(self, partition: TransactionPartition, metadata: TransactionMetadata) -> PendingCompleteTxn:
        return PendingCompleteTxn(
            metadata,
            metadata.prepare_complete(self._now_ms()),
            partition.partition,
            partition.leader_epoch,
            is_commit=metadata.state is TransactionState.PREPARE_COMMIT,
        )

    # -- InitProducerId -------------------------------------------------------------------------

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None, on_done: OnProducer
    ) -> None:
        """Give the producer the next epoch of its id, which fences those before it.

        `expected` is what the producer had before, if it says so (KIP-360). Errors: INVALID_REQUEST
        (an empty id), INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS (a
        transaction is ending, or is aborted now: ask again).
        """
        try:
            self._check_init(transactional_id, timeout_ms)
            partition = self.states.partition_of(transactional_id)
            metadata = partition.transactions.get(transactional_id)
            if metadata is None:
                metadata = self._new_transactional_id(transactional_id, timeout_ms)
                partition.transactions[transactional_id] = metadata
            values = self._prepare_init(metadata, timeout_ms, expected)
        except ApiError as error:
            on_done(error.error_code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            return

        if values.state is TransactionState.PREPARE_EPOCH_FENCE:
            self._abort_to_fence(
                metadata,
                values,
                lambda error_code, _id, _epoch: on_done(
                    error_code or ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER_ID, NO_PRODUCER_EPOCH
                ),
            )
            return

        def written(error_code: ErrorCode) -> None:
            if error_code:
                on_done(error_code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            else:
                on_done(error_code, values.producer_id, values.producer_epoch)

        self.states.append(transactional_id, partition.leader_epoch, values, written)

    def _check_init(self, transactional_id: str, timeout_ms: int) -> None:
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.broker.config.transaction_max_timeout_ms:
            raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)

    def _new_transactional_id(self, transactional_id: str, timeout_ms: int) -> TransactionMetadata:
        values = TxnTransitMetadata(
            state=TransactionState.EMPTY,
            producer_id=self._new_producer_id(),
            timeout_ms=timeout_ms,
            last_update_ms=self._now_ms(),
        )
        return TransactionMetadata(transactional_id, values)

    def _prepare_init(
        self, metadata: TransactionMetadata, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> TxnTransitMetadata:
        _check_nothing_pending(metadata)
        if expected is not None and not _may_be_producer(metadata, expected):
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        if metadata.state.is_prepared:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if metadata.state is TransactionState.ONGOING:
            return metadata.prepare_fence_producer_epoch()
        if metadata.is_epoch_exhausted and (expected is None or expected.epoch == metadata.producer_epoch):
            return metadata.prepare_producer_id_rotation(
                self._new_producer_id(), timeout_ms, self._now_ms(), record_last_epoch=expected is not None
            )
        if metadata.is_epoch_exhausted:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "no epoch is left")
        epoch = None if expected is None else expected.epoch
        return metadata.prepare_increment_producer_epoch(timeout_ms, epoch, self._now_ms())

    # -- partitions -----------------------------------------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        version: TransactionVersion,
        on_done: Callable[[ErrorCode], object],
    ) -> None:
        """Add partitions to the producer's transaction, which begins with the first ones.

        Errors: INVALID_REQUEST (an empty id), INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
        CONCURRENT_TRANSACTIONS (the transaction before is not complete).
        """
        try:
            partition, metadata = self._find_producers(transactional_id)
            _check_nothing_pending(metadata)
            _check_producer(metadata, producer)
        except ApiError as error:
            on_done(error.error_code)
            return
        if metadata.state is TransactionState.ONGOING and metadata.partitions.keys() >= set(partitions):
            on_done(ErrorCode.NONE)
            return
        values = metadata.prepare_add_partitions(partitions, self._now_ms(), version)
        self.states.append(transactional_id, partition.leader_epoch, values, on_done)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return for each partition whether it is in the producer's transaction (KIP-890).

        TRANSACTION_ABORTABLE for one that is not; else the same error for all, as `add_partitions`.
        """
        try:
            _, metadata = self._find_producers(transactional_id)
            _check_producer(metadata, producer)
        except ApiError as error:
            return dict.fromkeys(partitions, error.error_code)
        return {
            partition: ErrorCode.NONE if partition in metadata.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def _find_producers(self, transactional_id: str) -> tuple[TransactionPartition, TransactionMetadata]:
        """Return a transactional id that a producer has. Raises `ApiError`."""
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        partition = self.states.partition_of(transactional_id)
        metadata = partition.transactions.get(transactional_id)
        if metadata is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return partition, metadata

    # -- the end of transactions ----------------------------------------------------------------

    def end_transaction(self, end: EndOfTransaction, on_done: OnProducer) -> None:
        """Commit or abort; the answer comes when that is decided, before the markers are written.

        `on_done(NONE, producer_id, epoch)` tells what the producer's next transaction has, in `TV_2`;
        else -1 and -1. Errors: as `add_partitions`, and INVALID_TXN_STATE (see `end_transaction.py`).
        """
        nobody = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        try:
            partition, metadata = self._find_producers(end.transactional_id)
            is_fence = metadata.is_being_fenced
            values = prepare_end(metadata, end, self._now_ms(), self._new_producer_id)
        except ApiError as error:
            on_done(error.error_code, *nobody)
            return
        if values is None:
            if end.version.supports_epoch_bump:
                nobody = (metadata.producer_id, metadata.producer_epoch)
            on_done(ErrorCode.NONE, *nobody)
            return

        def written(error_code: ErrorCode) -> None:
            if error_code:
                if is_fence and not end.version.supports_epoch_bump:
                    metadata.has_failed_epoch_fence = True
                on_done(error_code, *nobody)
                return
            transaction = self._prepare_markers(partition, metadata)
            after = transaction.values
            if end.version.supports_epoch_bump:
                on_done(error_code, after.producer_id, after.producer_epoch)
            else:
                on_done(error_code, *nobody)
            self.markers.add(transaction)

        self.states.append(end.transactional_id, partition.leader_epoch, values, written)

    def _abort_to_fence(self, metadata: TransactionMetadata, fenced: TxnTransitMetadata, on_done: OnProducer) -> None:
        end = EndOfTransaction(
            metadata.transactional_id,
            fenced.producer_id,
            fenced.producer_epoch,
            is_commit=False,
            version=self.states.version_level,
            is_from_client=False,
        )
        self.end_transaction(end, on_done)

    def abort_timed_out_transactions(self) -> None:
        """Abort transactions open for longer than their timeout, which fences their producers."""
        now_ms = self._now_ms()
        for metadata in self.states.each():
            if not metadata.is_timed_out(now_ms):
                continue

            def done(error_code: ErrorCode, _id: int, _epoch: int, of: TransactionMetadata = metadata) -> None:
                self._log.info("transaction_timed_out", transactional_id=of.transactional_id, error=error_code.name)

            self._abort_to_fence(metadata, metadata.prepare_fence_producer_epoch(), done)


def _may_be_producer(metadata: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether the producer id is this producer's, or was before its epochs were exhausted."""
    return (
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == metadata.producer_id
        or (expected.producer_id == metadata.values.previous_producer_id and is_epoch_exhausted(expected.epoch))
    )


def _check_nothing_pending(metadata: TransactionMetadata) -> None:
    if metadata.pending_state is not None:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _check_producer(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> None:
    if metadata.producer_id != producer.producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != producer.epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if metadata.state.is_prepared:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)

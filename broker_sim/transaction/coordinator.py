"""The transaction coordinator of one broker; mirrors `TransactionCoordinator`.

The leader of a partition of `__transaction_state` is the coordinator of the transactional ids in it.
A new leader loads the partition before it serves requests, and completes the transactions in
PrepareCommit and PrepareAbort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from broker_sim.runtime.event_log import get_logger
from broker_sim.transaction.end_transaction import EndOfTransaction, prepare_end
from broker_sim.transaction.marker_channel import PendingCompleteTxn, TransactionMarkerChannelManager
from broker_sim.transaction.metadata import NO_TIMEOUT_MS, TransactionMetadata, TxnTransitMetadata, is_epoch_exhausted
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

_NO_PRODUCER: Final = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class ProducerIdAndEpoch(NamedTuple):
    """Producer id and epoch from a producer's request."""

    producer_id: int
    epoch: int


class TransactionCoordinator:
    """Serves the transactional ids of this broker. Thread rule: the broker's loop.

    Each callback is called once, before the method returns or when the written record is committed.
    Errors are those that the newest request versions get.
    """

    def __init__(
        self,
        broker: BrokerContext,
        next_producer_id: Callable[[], int | None],
        markers: InterBrokerSender[messages.WriteTxnMarkersRequest, messages.WriteTxnMarkersResponse],
    ) -> None:
        """`next_producer_id()` returns an unused producer id, None if no block of ids is available yet."""
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
        """Apply new metadata: load and unload partitions, and look up missing leaders for markers."""
        self.states.runtime.follow(changes, image)
        self.markers.on_image()

    def _loaded(self, partition: TransactionPartition) -> None:
        for metadata in list(partition.transactions.values()):
            if metadata.state.is_prepared:
                self.markers.add(self._prepare_complete(partition, metadata))

    def _unloaded(self, partition: int) -> None:
        self.markers.remove_markers_of(partition)

    def shutdown(self) -> None:
        """Drop all state without writing anything, as when the broker is killed."""
        self.states.runtime.shutdown()

    def _prepare_complete(self, partition: TransactionPartition, metadata: TransactionMetadata) -> PendingCompleteTxn:
        return PendingCompleteTxn(
            metadata,
            metadata.prepare_complete(self._now_ms()),
            partition.partition,
            partition.leader_epoch,
            is_commit=metadata.state is TransactionState.PREPARE_COMMIT,
        )

    # -- InitProducerId -------------------------------------------------------------------------

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        on_done: OnProducer,
        *,
        enable_2pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        """Give the producer the next epoch of its id, which fences all earlier producers.

        `expected` is the current id and epoch in the request, if it has them (KIP-360). With `enable_2pc`,
        transactions never time out (two-phase commits, KIP-939).

        Errors: INVALID_REQUEST (empty transactional id), INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED (two-phase commits are not enabled), UNSUPPORTED_VERSION (a prepared
        transaction is to be kept), CONCURRENT_TRANSACTIONS (a transaction is ending or has to be aborted first: retry).
        """
        try:
            self._check_init(transactional_id, timeout_ms, enable_2pc, keep_prepared_txn)
            if enable_2pc:
                timeout_ms = NO_TIMEOUT_MS
            partition = self.states.partition_of(transactional_id)
            metadata = partition.transactions.get(transactional_id)
            if metadata is None:
                metadata = self._new_transactional_id(transactional_id, timeout_ms)
                partition.transactions[transactional_id] = metadata
            values = self._prepare_init(metadata, timeout_ms, expected)
        except ApiError as error:
            on_done(error.error_code, *_NO_PRODUCER)
            return

        if values.state is TransactionState.PREPARE_EPOCH_FENCE:
            self._abort_to_fence(
                metadata,
                values,
                lambda error_code, _id, _epoch: on_done(error_code or ErrorCode.CONCURRENT_TRANSACTIONS, *_NO_PRODUCER),
            )
            return

        def written(error_code: ErrorCode) -> None:
            if error_code:
                on_done(error_code, *_NO_PRODUCER)
            else:
                on_done(error_code, values.producer_id, values.producer_epoch)

        self.states.append(transactional_id, partition.leader_epoch, values, written)

    def _check_init(self, transactional_id: str, timeout_ms: int, enable_2pc: bool, keep_prepared_txn: bool) -> None:
        config = self.broker.config
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if enable_2pc and not config.transaction_two_phase_commit_enable:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if keep_prepared_txn:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if not enable_2pc and not 0 < timeout_ms <= config.transaction_max_timeout_ms:
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
        metadata.check_nothing_pending()
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
        """Add partitions to the producer's transaction; the first ones begin it.

        Errors: INVALID_REQUEST (empty transactional id), INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
        CONCURRENT_TRANSACTIONS (the previous transaction is not complete).
        """
        try:
            partition, metadata = self._find_transactional_id(transactional_id)
            metadata.check_nothing_pending()
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
        """Check that each partition is in the producer's transaction (KIP-890).

        Returns NONE or TRANSACTION_ABORTABLE for each; if the producer is invalid, the error of
        `add_partitions` for all.
        """
        try:
            _, metadata = self._find_transactional_id(transactional_id)
            _check_producer(metadata, producer)
        except ApiError as error:
            return dict.fromkeys(partitions, error.error_code)
        return {
            partition: ErrorCode.NONE if partition in metadata.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def _find_transactional_id(self, transactional_id: str) -> tuple[TransactionPartition, TransactionMetadata]:
        """Return a transactional id and its partition. Raises `ApiError` if the id is empty or unknown."""
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        partition = self.states.partition_of(transactional_id)
        metadata = partition.transactions.get(transactional_id)
        if metadata is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return partition, metadata

    # -- commit and abort -----------------------------------------------------------------------

    def end_transaction(self, end: EndOfTransaction, on_done: OnProducer) -> None:
        """Commit or abort; answers once PrepareCommit or PrepareAbort is committed, before markers are written.

        In `TV_2`, `on_done(NONE, producer_id, epoch)` gets the id and epoch of the producer's next transaction,
        otherwise -1 and -1. Errors: as `add_partitions`, and INVALID_TXN_STATE (see `end_transaction.py`).
        """
        try:
            partition, metadata = self._find_transactional_id(end.transactional_id)
            is_fence = metadata.is_being_fenced
            values = prepare_end(metadata, end, self._now_ms(), self._new_producer_id)
        except ApiError as error:
            on_done(error.error_code, *_NO_PRODUCER)
            return
        if values is None:
            if end.version.supports_epoch_bump:
                on_done(ErrorCode.NONE, metadata.producer_id, metadata.producer_epoch)
            else:
                on_done(ErrorCode.NONE, *_NO_PRODUCER)
            return

        def written(error_code: ErrorCode) -> None:
            if error_code:
                if is_fence and not end.version.supports_epoch_bump:
                    metadata.has_failed_epoch_fence = True
                on_done(error_code, *_NO_PRODUCER)
                return
            transaction = self._prepare_complete(partition, metadata)
            next_values = transaction.values
            if end.version.supports_epoch_bump:
                on_done(error_code, next_values.producer_id, next_values.producer_epoch)
            else:
                on_done(error_code, *_NO_PRODUCER)
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
        """Abort transactions that exceed their timeout, which fences their producers."""
        now_ms = self._now_ms()
        for metadata in self.states.each():
            if not metadata.is_timed_out(now_ms):
                continue

            def done(error_code: ErrorCode, _id: int, _epoch: int, owner: TransactionMetadata = metadata) -> None:
                self._log.info("transaction_timed_out", transactional_id=owner.transactional_id, error=error_code.name)

            self._abort_to_fence(metadata, metadata.prepare_fence_producer_epoch(), done)


def _may_be_producer(metadata: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether `expected` has the current producer id, or the previous one with an exhausted epoch."""
    return (
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == metadata.producer_id
        or (expected.producer_id == metadata.values.previous_producer_id and is_epoch_exhausted(expected.epoch))
    )


def _check_producer(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> None:
    if metadata.producer_id != producer.producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != producer.epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if metadata.state.is_prepared:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)

"""Sends transaction markers to partition leaders; mirrors `TransactionMarkerChannelManager`.

A prepared transaction has one marker for each leader of its partitions. Each broker has at most one
request in flight; markers that become due meanwhile are batched into its next request. Markers whose
leader is not alive wait for new metadata. A transaction is complete when no partition is left.

Outcomes of a marker (`TransactionMarkerRequestCompletionHandler`):

A. written, or not supported by the leader: its partition is done
B. a retriable error, or the broker is no longer the leader: resent to the leader at that time
C. the leader has seen a later epoch of the producer or coordinator: abandoned
D. disconnected, or no response within `request.timeout.ms`: as B
E. another broker, or this one in another epoch, is now the coordinator: abandoned; that one sends markers itself

Deliberate difference: Kafka resends at once, this manager after `RETRY_BACKOFF_MS`. Errors that crash
Kafka's sender thread are treated as B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition, by_topic
from broker_sim.protocol import messages
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.inter_broker import InterBrokerQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.runtime.inter_broker import InterBrokerSender
    from broker_sim.transaction.metadata import TransactionMetadata, TxnTransitMetadata
    from broker_sim.transaction.state_manager import TransactionStateManager

log = get_logger(__name__)

RETRY_BACKOFF_MS: Final = 20
"""Delay before a marker is resent."""
UNKNOWN_BROKER: Final = -1
"""Stands for the leader id of partitions whose leader is not alive."""

_DONE: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})
_FENCING_ERRORS: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})

WritableTxnMarker = messages.WriteTxnMarkersRequest.WritableTxnMarker
WritableTxnMarkerTopic = messages.WriteTxnMarkersRequest.WritableTxnMarkerTopic


@dataclass(frozen=True, slots=True, eq=False)
class PendingCompleteTxn:
    """A prepared transaction; `values` are its values once complete. Compared by identity."""

    metadata: TransactionMetadata
    values: TxnTransitMetadata
    partition: int
    """Partition of `__transaction_state` that holds the transactional id."""
    coordinator_epoch: int
    is_commit: bool


class _Marker(NamedTuple):
    transaction: PendingCompleteTxn
    partitions: tuple[TopicPartition, ...]

    def message(self) -> messages.WriteTxnMarkersRequest.WritableTxnMarker:
        transaction = self.transaction
        values = transaction.metadata.values
        return WritableTxnMarker(
            producer_id=values.producer_id,
            producer_epoch=values.producer_epoch,
            transaction_result=transaction.is_commit,
            topics=[WritableTxnMarkerTopic(*entry) for entry in by_topic(self.partitions).items()],
            coordinator_epoch=transaction.coordinator_epoch,
            transaction_version=values.client_version,
        )


class TransactionMarkerChannelManager:
    """Sends the markers of one coordinator. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker: BrokerContext,
        states: TransactionStateManager,
        sender: InterBrokerSender[messages.WriteTxnMarkersRequest, messages.WriteTxnMarkersResponse],
    ) -> None:
        """`sender` sends WriteTxnMarkers requests to the leaders."""
        self._broker = broker
        self._states = states
        self._queue = InterBrokerQueue(
            sender,
            list[_Marker],
            self._next_request,
            broker.process.after_serving,
            before_sending=self._requeue_leaderless,
            order=sorted,
        )
        self._leaderless: list[_Marker] = []
        self._pending: dict[str, PendingCompleteTxn] = {}
        self._log_append_retries: list[PendingCompleteTxn] = []
        self._log = log.bind(broker.clock, node=f"broker-{broker.broker_id}")

    @property
    def unknown_destination_queue_size(self) -> int:
        """Number of markers that wait for a live leader."""
        return len(self._leaderless)

    @property
    def log_append_retry_queue_size(self) -> int:
        """Number of completed transactions whose final record has to be written again."""
        return len(self._log_append_retries)

    # -- sending --------------------------------------------------------------------------------

    def add(self, transaction: PendingCompleteTxn) -> None:
        """Send the markers of a prepared transaction, and complete it when all are written."""
        self._pending[transaction.metadata.transactional_id] = transaction
        self._enqueue(transaction, tuple(transaction.metadata.partitions))
        self._queue.send_soon()

    def _enqueue(self, transaction: PendingCompleteTxn, partitions: Iterable[TopicPartition]) -> None:
        """Queue markers for the current leaders; complete the transaction if no partition is left."""
        image = self._broker.image()
        deleted: list[TopicPartition] = []
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            state = image.partition(partition)
            if state is None:
                deleted.append(partition)
                continue
            leader = image.alive_broker(state.leader)
            broker_id = UNKNOWN_BROKER if leader is None else leader.broker_id
            by_leader.setdefault(broker_id, []).append(partition)
        for broker_id, leader_partitions in by_leader.items():
            markers = self._leaderless if broker_id == UNKNOWN_BROKER else self._queue.waiting_for(broker_id)
            markers.append(_Marker(transaction, tuple(leader_partitions)))
        if deleted:
            # A deleted topic needs no marker.
            transaction.metadata.remove_partitions(deleted)
        self._maybe_complete(transaction)

    def on_image(self) -> None:
        """Retry the markers whose leader was not alive."""
        if self.unknown_destination_queue_size:
            self._queue.send_soon()

    def _requeue_leaderless(self) -> None:
        leaderless, self._leaderless = self._leaderless, []
        for marker in leaderless:
            if self._is_pending(marker):
                self._enqueue(marker.transaction, marker.partitions)

    def _next_request(
        self, waiting: list[_Marker]
    ) -> tuple[messages.WriteTxnMarkersRequest, Callable[[messages.WriteTxnMarkersResponse | None], object]] | None:
        markers = [marker for marker in waiting if self._is_pending(marker)]
        waiting.clear()
        if not markers:
            return None
        request = messages.WriteTxnMarkersRequest([marker.message() for marker in markers])
        return request, partial(self._broker.process.actions.serve, self._complete_markers, markers)

    # -- responses ------------------------------------------------------------------------------

    def _complete_markers(self, markers: Iterable[_Marker], response: messages.WriteTxnMarkersResponse | None) -> None:
        errors = {} if response is None else _errors(response)
        for marker in markers:
            self._complete_marker(marker, errors)
        if self._queue or self._leaderless:
            self._queue.send_soon()

    def _complete_marker(self, marker: _Marker, errors: Mapping[tuple[int, TopicPartition], ErrorCode]) -> None:
        transaction = marker.transaction
        if not self._is_pending(marker) and not self._is_abandoned(transaction):
            return
        producer_id = transaction.metadata.producer_id
        written_partitions: list[TopicPartition] = []
        retry_partitions: list[TopicPartition] = []
        is_fenced = False
        for partition in marker.partitions:
            error_code = errors.get((producer_id, partition), ErrorCode.NETWORK_EXCEPTION)
            if error_code in _DONE:
                written_partitions.append(partition)
            elif error_code in _FENCING_ERRORS:
                self._log.info(
                    "markers_given_up",
                    transactional_id=transaction.metadata.transactional_id,
                    partition=str(partition),
                    error=error_code.name,
                )
                is_fenced = True
            else:
                retry_partitions.append(partition)
        # Even if the transaction is abandoned: DescribeTransactions shows its remaining partitions.
        transaction.metadata.remove_partitions(written_partitions)
        if is_fenced:
            self._abandon(transaction)
        elif retry_partitions:
            self._broker.call_later(RETRY_BACKOFF_MS, self._resend, marker, tuple(retry_partitions))
        else:
            self._maybe_complete(transaction)

    def _resend(self, marker: _Marker, partitions: tuple[TopicPartition, ...]) -> None:
        if self._is_pending(marker):
            self._enqueue(marker.transaction, partitions)
            self._queue.send_soon()

    def _is_pending(self, marker: _Marker) -> bool:
        """Return whether the marker's transaction is pending; abandon it if another broker coordinates it now (E)."""
        transaction = marker.transaction
        if self._pending.get(transaction.metadata.transactional_id) is not transaction:
            return False
        if self._is_current(transaction):
            return True
        self._abandon(transaction)
        return False

    def _is_current(self, transaction: PendingCompleteTxn) -> bool:
        try:
            current = self._states.find_in(
                transaction.partition, transaction.metadata.transactional_id, transaction.coordinator_epoch
            )
        except ApiError:
            return False
        return current is transaction.metadata

    def _is_abandoned(self, transaction: PendingCompleteTxn) -> bool:
        """Whether the transaction was abandoned after a fencing error (C), and this broker is still its coordinator."""
        is_pending = transaction.metadata.transactional_id in self._pending
        return not is_pending and self._is_current(transaction)

    def _abandon(self, transaction: PendingCompleteTxn) -> None:
        self._pending.pop(transaction.metadata.transactional_id, None)

    # -- completion -----------------------------------------------------------------------------

    def _maybe_complete(self, transaction: PendingCompleteTxn) -> None:
        transactional_id = transaction.metadata.transactional_id
        if self._pending.get(transactional_id) is transaction and not transaction.metadata.partitions:
            del self._pending[transactional_id]
            if self._is_current(transaction):
                self._write_complete(transaction)

    def _write_complete(self, transaction: PendingCompleteTxn) -> None:
        def done(error_code: ErrorCode) -> None:
            if error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                if not self._log_append_retries:
                    self._broker.call_later(RETRY_BACKOFF_MS, self._retry_log_appends)
                self._log_append_retries.append(transaction)

        self._states.append(
            transaction.metadata.transactional_id,
            transaction.coordinator_epoch,
            transaction.values,
            done,
            keep_pending_on=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )

    def _retry_log_appends(self) -> None:
        retries, self._log_append_retries = self._log_append_retries, []
        for transaction in retries:
            self._write_complete(transaction)

    def remove_markers_of(self, partition: int) -> None:
        """Drop the pending transactions of a partition of `__transaction_state` that this broker no longer leads."""
        for transactional_id, transaction in list(self._pending.items()):
            if transaction.partition == partition:
                del self._pending[transactional_id]


def _errors(response: messages.WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], ErrorCode]:
    return {
        (marker.producer_id, TopicPartition(topic.name, part.partition_index)): ErrorCode(part.error_code)
        for marker in response.markers
        for topic in marker.topics
        for part in topic.partitions
    }

"""Markers on their way to the leaders; mirrors `TransactionMarkerChannelManager`.

A prepared transaction has a marker for each leader of its partitions. Markers for one broker go
together, in one request at a time; what becomes due meanwhile goes with the next. Markers without a
living leader wait for new metadata. A transaction without partitions left is complete.

What becomes of a marker (`TransactionMarkerRequestCompletionHandler`):

A. written, or not understood by the leader: its partition is done
B. the leader cannot now, or does not lead any more: sent again, to the leader of then
C. the leader has seen a later epoch of the producer or of the coordinator: given up
D. the connection is lost, or there is no answer in `request.timeout.ms`: as B
E. another broker, or this one in another epoch, is the coordinator: given up; it sends markers itself

Deliberate difference: Kafka sends again at once, here `RETRY_BACKOFF_MS` later. Errors that Kafka's
sender dies of are treated as B.
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
"""Delay before a marker is sent again."""
UNKNOWN_BROKER: Final = -1
"""Leader id of partitions whose leader is not alive."""

_DONE: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})
_GIVEN_UP: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})

WritableTxnMarker = messages.WriteTxnMarkersRequest.WritableTxnMarker
WritableTxnMarkerTopic = messages.WriteTxnMarkersRequest.WritableTxnMarkerTopic


@dataclass(frozen=True, slots=True, eq=False)
class PendingCompleteTxn:
    """A transaction whose end is decided; `values` are those after it. Each is only equal to itself."""

    metadata: TransactionMetadata
    values: TxnTransitMetadata
    partition: int
    """The id's partition of `__transaction_state`."""
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
    """The markers of one broker. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker: BrokerContext,
        states: TransactionStateManager,
        sender: InterBrokerSender[messages.WriteTxnMarkersRequest, messages.WriteTxnMarkersResponse],
    ) -> None:
        """`sender` sends markers to the leaders that write them."""
        self._broker = broker
        self._states = states
        self._queue = InterBrokerQueue(
            sender,
            list[_Marker],
            self._take_markers,
            broker.process.after_serving,
            before_sending=self._look_for_leaders,
            order=sorted,
        )
        self._leaderless: list[_Marker] = []
        self._pending: dict[str, PendingCompleteTxn] = {}
        self._log_append_retries: list[PendingCompleteTxn] = []
        self._log = log.bind(broker.clock, node=f"broker-{broker.broker_id}")

    @property
    def unknown_destination_queue_size(self) -> int:
        """Number of markers that wait for a leader."""
        return len(self._leaderless)

    @property
    def log_append_retry_queue_size(self) -> int:
        """Number of completed transactions whose record has to be written again."""
        return len(self._log_append_retries)

    # -- what is to be sent ---------------------------------------------------------------------

    def add(self, transaction: PendingCompleteTxn) -> None:
        """Send the markers of a prepared transaction, and complete it after the last one."""
        self._pending[transaction.metadata.transactional_id] = transaction
        self._enqueue(transaction, tuple(transaction.metadata.partitions))
        self._queue.send_soon()

    def _enqueue(self, transaction: PendingCompleteTxn, partitions: Iterable[TopicPartition]) -> None:
        """Queue markers for the current leaders; a transaction that needs none is complete."""
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
        for broker_id, led in by_leader.items():
            markers = self._leaderless if broker_id == UNKNOWN_BROKER else self._queue.waiting_for(broker_id)
            markers.append(_Marker(transaction, tuple(led)))
        if deleted:
            # A deleted topic needs no marker.
            transaction.metadata.remove_partitions(deleted)
        self._maybe_complete(transaction)

    def on_image(self) -> None:
        """Look again for the leaders of partitions that had none."""
        if self.unknown_destination_queue_size:
            self._queue.send_soon()

    def _look_for_leaders(self) -> None:
        leaderless, self._leaderless = self._leaderless, []
        for marker in leaderless:
            if self._is_pending(marker):
                self._enqueue(marker.transaction, marker.partitions)

    def _take_markers(
        self, waiting: list[_Marker]
    ) -> tuple[messages.WriteTxnMarkersRequest, Callable[[messages.WriteTxnMarkersResponse | None], object]] | None:
        markers = [marker for marker in waiting if self._is_pending(marker)]
        waiting.clear()
        if not markers:
            return None
        request = messages.WriteTxnMarkersRequest([marker.message() for marker in markers])
        return request, partial(self._broker.process.actions.serve, self._take, markers)

    # -- what comes back ------------------------------------------------------------------------

    def _take(self, markers: Iterable[_Marker], response: messages.WriteTxnMarkersResponse | None) -> None:
        errors = {} if response is None else _errors(response)
        for marker in markers:
            self._take_one(marker, errors)
        if self._queue or self._leaderless:
            self._queue.send_soon()

    def _take_one(self, marker: _Marker, errors: Mapping[tuple[int, TopicPartition], ErrorCode]) -> None:
        transaction = marker.transaction
        if not self._is_pending(marker) and not self._is_given_up(transaction):
            return
        producer_id = transaction.metadata.producer_id
        done: list[TopicPartition] = []
        again: list[TopicPartition] = []
        is_given_up = False
        for partition in marker.partitions:
            error_code = errors.get((producer_id, partition), ErrorCode.NETWORK_EXCEPTION)
            if error_code in _DONE:
                done.append(partition)
            elif error_code in _GIVEN_UP:
                self._log.info(
                    "markers_given_up",
                    transactional_id=transaction.metadata.transactional_id,
                    partition=str(partition),
                    error=error_code.name,
                )
                is_given_up = True
            else:
                again.append(partition)
        # Also of a transaction that is given up: descriptions of it show what is left.
        transaction.metadata.remove_partitions(done)
        if is_given_up:
            self._give_up(transaction)
        elif again:
            self._broker.call_later(RETRY_BACKOFF_MS, self._send_again, marker, tuple(again))
        else:
            self._maybe_complete(transaction)

    def _send_again(self, marker: _Marker, partitions: tuple[TopicPartition, ...]) -> None:
        if self._is_pending(marker):
            self._enqueue(marker.transaction, partitions)
            self._queue.send_soon()

    def _is_pending(self, marker: _Marker) -> bool:
        """Whether the marker's transaction is still to be completed, by this coordinator."""
        transaction = marker.transaction
        if self._pending.get(transaction.metadata.transactional_id) is not transaction:
            return False
        if self._is_current(transaction):
            return True
        self._give_up(transaction)
        return False

    def _is_current(self, transaction: PendingCompleteTxn) -> bool:
        try:
            current = self._states.find_in(
                transaction.partition, transaction.metadata.transactional_id, transaction.coordinator_epoch
            )
        except ApiError:
            return False
        return current is transaction.metadata

    def _is_given_up(self, transaction: PendingCompleteTxn) -> bool:
        """Whether a leader has refused a marker of the transaction, and this broker is still its coordinator."""
        is_pending = transaction.metadata.transactional_id in self._pending
        return not is_pending and self._is_current(transaction)

    def _give_up(self, transaction: PendingCompleteTxn) -> None:
        self._pending.pop(transaction.metadata.transactional_id, None)

    # -- the end --------------------------------------------------------------------------------

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
        """Forget the transactions of a partition of `__transaction_state` that this broker leads no more."""
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

"""A leader's questions to the coordinators of transactions; mirrors `AddPartitionsToTxnManager`.

A leader asks before the first append of a transaction to a partition: whether the partition is part of
it, or, for clients that leave that to the leader, to make it so (KIP-890). Questions to one coordinator
go together, in one request at a time; of each transactional id there is at most one in a request.

| who waits in the request already | becomes |
|---|---|
| the same id, in an older epoch | INVALID_PRODUCER_EPOCH for the older one |
| the same id, in the same epoch | NETWORK_EXCEPTION for the one that waits: its client has sent again |
| the same id, in a newer epoch | INVALID_PRODUCER_EPOCH for the one that comes |

Deliberate difference: to itself a broker does not speak over a link, as in `marker_link.py`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition, by_topic
from broker_sim.protocol import messages
from broker_sim.runtime.request_timeouts import RequestTimeouts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from broker_sim.broker.environment import BrokerEnvironment
    from broker_sim.config import BrokerConfig
    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.process import Process
    from broker_sim.transaction.state_manager import TransactionStateManager

    OnResult = Callable[[Mapping[TopicPartition, ErrorCode]], object]

__all__ = ["AddPartitionsToTxnManager"]

Transaction = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic


class _Question(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    adds: bool
    on_result: OnResult

    def message(self) -> messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
        return Transaction(
            self.transactional_id,
            self.producer_id,
            self.producer_epoch,
            verify_only=not self.adds,
            topics=[Topic(*entry) for entry in by_topic(self.partitions).items()],
        )

    def fail(self, error_code: ErrorCode) -> None:
        self.on_result(dict.fromkeys(self.partitions, error_code))


class AddPartitionsToTxnManager:
    """The `TransactionVerifier` over links. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker_id: int,
        environment: BrokerEnvironment,
        process: Process,
        config: BrokerConfig,
        image: Callable[[], MetadataImage],
        states: TransactionStateManager,
    ) -> None:
        self._broker_id = broker_id
        self._links = environment.links
        self._brokers = environment.brokers
        self._timeouts = RequestTimeouts(
            process.call_later, process.clock, config.request_timeout_ms
        )
        self._image = image
        self._partition_for = states.partition_for
        self._process = process
        self._waiting: dict[int, dict[str, _Question]] = {}
        """Questions by coordinator and transactional id."""
        self._in_flight: set[int] = set()

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic_partitions: Collection[TopicPartition],
        on_result: OnResult,
        *,
        adds: bool,
    ) -> None:
        """Ask whether the partitions are part of the transaction; with `adds` they become so.

        `on_result(errors)` has the partitions with errors: those of the coordinator, with
        INVALID_PRODUCER_EPOCH for PRODUCER_FENCED; COORDINATOR_NOT_AVAILABLE without one,
        NETWORK_EXCEPTION where it does not answer.
        """
        question = _Question(
            transactional_id,
            producer_id,
            producer_epoch,
            tuple(topic_partitions),
            adds,
            on_result,
        )
        coordinator = self._coordinator(transactional_id)
        if coordinator is None:
            question.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        waiting = self._waiting.setdefault(coordinator, {})
        other = waiting.get(transactional_id)
        if other is not None:
            if other.producer_epoch > producer_epoch:
                question.fail(ErrorCode.INVALID_PRODUCER_EPOCH)
                return
            is_same = other.producer_epoch == producer_epoch
            del waiting[transactional_id]
            other.fail(ErrorCode.NETWORK_EXCEPTION if is_same else ErrorCode.INVALID_PRODUCER_EPOCH)
        waiting[transactional_id] = question
        self._process.after_serving(partial(self._send, coordinator))

    def _coordinator(self, transactional_id: str) -> int | None:
        image = self._image()
        partition = TopicPartition(TRANSACTION_STATE_TOPIC, self._partition_for(transactional_id))
        state = image.partition(partition)
        node = None if state is None else image.alive_broker(state.leader)
        return None if node is None else node.broker_id

    def _send(self, coordinator: int) -> None:
        if coordinator in self._in_flight or coordinator not in self._waiting:
            return
        questions = self._waiting.pop(coordinator)
        self._in_flight.add(coordinator)

        def end(response: messages.AddPartitionsToTxnResponse | None) -> None:
            self._in_flight.discard(coordinator)
            _tell(questions, response)
            self._send(coordinator)

        def answered(response: messages.AddPartitionsToTxnResponse | None) -> None:
            if self._timeouts.end(number):
                end(response)

        number = self._timeouts.begin(partial(end, None))
        request = messages.AddPartitionsToTxnRequest(
            [question.message() for question in questions.values()]
        )
        if coordinator == self._broker_id:
            self._brokers[coordinator].add_partitions_to_txn(request, answered)
            return
        self._links.call(
            self._broker_id,
            coordinator,
            lambda send_result: self._brokers[coordinator].add_partitions_to_txn(
                request, send_result
            ),
            answered,
            partial(answered, None),
        )


def _tell(
    questions: dict[str, _Question], response: messages.AddPartitionsToTxnResponse | None
) -> None:
    results = () if response is None else response.results_by_transaction
    for result in results:
        errors = {
            TopicPartition(topic.name, part.partition_index): _told(part.partition_error_code)
            for topic in result.topic_results
            for part in topic.results_by_partition
            if part.partition_error_code
        }
        questions.pop(result.transactional_id).on_result(errors)
    for question in questions.values():
        question.fail(ErrorCode.NETWORK_EXCEPTION)


def _told(code: int) -> ErrorCode:
    """Return the error as a producer is told it, whatever its version."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode(code)

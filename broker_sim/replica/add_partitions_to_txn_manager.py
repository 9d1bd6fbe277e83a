"""Verifies transactions with their coordinators, for a leader; mirrors `AddPartitionsToTxnManager`.

Before the first append of a transaction to a partition its leader asks the coordinator whether the partition is
part of the transaction, or adds it, for clients that leave that to the leader (KIP-890). Questions to one
coordinator go together, in one request at a time, with at most one for each transactional id:

| question that waits already | result |
|---|---|
| the same id, in an older epoch | INVALID_PRODUCER_EPOCH for the older one |
| the same id, in the same epoch | NETWORK_EXCEPTION for the one that waits: its client has sent again |
| the same id, in a newer epoch | INVALID_PRODUCER_EPOCH for the one that comes |
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition, by_topic
from broker_sim.protocol import messages
from broker_sim.runtime.inter_broker import InterBrokerQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.inter_broker import InterBrokerSender

    OnResult = Callable[[Mapping[TopicPartition, ErrorCode]], object]
    Sender = InterBrokerSender[messages.AddPartitionsToTxnRequest, messages.AddPartitionsToTxnResponse]

Transaction = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic


class TransactionSupportedOperation(Enum):
    """Errors that a client that writes to a transaction can handle; mirrors the enum in `AddPartitionsToTxnManager`."""

    DEFAULT_ERROR = "errors of before KIP-890"
    GENERIC_ERROR_SUPPORTED = "TRANSACTION_ABORTABLE too"
    ADD_PARTITION = "it leaves to the leader to add the partition (transaction version 2)"

    @property
    def supports_epoch_bump(self) -> bool:
        """Whether the producer's epoch grows with each transaction."""
        return self is TransactionSupportedOperation.ADD_PARTITION

    @classmethod
    def of_produce(cls, version: int) -> TransactionSupportedOperation:
        """Return what a client of that version of Produce can handle."""
        if version >= 12:
            return cls.ADD_PARTITION
        return cls.GENERIC_ERROR_SUPPORTED if version == 11 else cls.DEFAULT_ERROR

    @classmethod
    def of_txn_offset_commit(cls, version: int) -> TransactionSupportedOperation:
        """Return what a client of that version of TxnOffsetCommit can handle."""
        if version >= 5:
            return cls.ADD_PARTITION
        return cls.GENERIC_ERROR_SUPPORTED if version == 4 else cls.DEFAULT_ERROR


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
    """Asks the coordinators of transactions over links. Thread rule: the broker's loop."""

    def __init__(
        self,
        sender: Sender,
        after_serving: Callable[[Callable[[], object]], object],
        image: Callable[[], MetadataImage],
        partition_for: Callable[[str], int],
    ) -> None:
        """`partition_for(transactional_id)` is the partition of `__transaction_state` that the id is in."""
        self._queue = InterBrokerQueue(sender, dict[str, _Question], self._take_questions, after_serving)
        """Questions by transactional id, for their coordinators."""
        self._image = image
        self._partition_for = partition_for

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
        question = _Question(transactional_id, producer_id, producer_epoch, tuple(topic_partitions), adds, on_result)
        coordinator = self._coordinator(transactional_id)
        if coordinator is None:
            question.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        waiting = self._queue.waiting_for(coordinator)
        other = waiting.get(transactional_id)
        if other is not None:
            if other.producer_epoch > producer_epoch:
                question.fail(ErrorCode.INVALID_PRODUCER_EPOCH)
                return
            is_same = other.producer_epoch == producer_epoch
            del waiting[transactional_id]
            other.fail(ErrorCode.NETWORK_EXCEPTION if is_same else ErrorCode.INVALID_PRODUCER_EPOCH)
        waiting[transactional_id] = question
        self._queue.send_soon()

    def _coordinator(self, transactional_id: str) -> int | None:
        image = self._image()
        partition = TopicPartition(TRANSACTION_STATE_TOPIC, self._partition_for(transactional_id))
        state = image.partition(partition)
        node = None if state is None else image.alive_broker(state.leader)
        return None if node is None else node.broker_id

    def _take_questions(
        self, waiting: dict[str, _Question]
    ) -> tuple[messages.AddPartitionsToTxnRequest, Callable[[messages.AddPartitionsToTxnResponse | None], object]]:
        questions = dict(waiting)
        waiting.clear()
        request = messages.AddPartitionsToTxnRequest([question.message() for question in questions.values()])
        return request, partial(self._take_answer, questions)

    def _take_answer(
        self, questions: dict[str, _Question], response: messages.AddPartitionsToTxnResponse | None
    ) -> None:
        _tell(questions, response)
        self._queue.send_all()


def _tell(questions: dict[str, _Question], response: messages.AddPartitionsToTxnResponse | None) -> None:
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
    """Return the error code that producers of any version get."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode(code)

"""Verifies transactions with their coordinators, for a leader; mirrors `AddPartitionsToTxnManager`.

Before the first append of a transaction to a partition, its leader asks the coordinator whether the partition is
part of the transaction, or adds it for clients that leave that to the leader (KIP-890). Verifications for one
coordinator are sent together, one request at a time, with at most one per transactional id. If the same id
already waits:

| producer epoch that waits | result |
|---|---|
| older than the new one | INVALID_PRODUCER_EPOCH for the one that waits |
| the same | NETWORK_EXCEPTION for the one that waits: its client has retried |
| newer than the new one | INVALID_PRODUCER_EPOCH for the new one |
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
    """Errors that a transactional client can handle; mirrors the enum in `AddPartitionsToTxnManager`."""

    DEFAULT_ERROR = "only errors from before KIP-890"
    GENERIC_ERROR_SUPPORTED = "also TRANSACTION_ABORTABLE"
    ADD_PARTITION = "the leader adds the partition (transaction version 2)"

    @property
    def supports_epoch_bump(self) -> bool:
        """Whether each transaction bumps the producer's epoch."""
        return self is TransactionSupportedOperation.ADD_PARTITION

    @classmethod
    def of_produce(cls, version: int) -> TransactionSupportedOperation:
        """Return what a client that sends this version of Produce can handle."""
        if version >= 12:
            return cls.ADD_PARTITION
        return cls.GENERIC_ERROR_SUPPORTED if version == 11 else cls.DEFAULT_ERROR

    @classmethod
    def of_txn_offset_commit(cls, version: int) -> TransactionSupportedOperation:
        """Return what a client that sends this version of TxnOffsetCommit can handle."""
        if version >= 5:
            return cls.ADD_PARTITION
        return cls.GENERIC_ERROR_SUPPORTED if version == 4 else cls.DEFAULT_ERROR


class _Verification(NamedTuple):
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
    """Sends verifications to transaction coordinators. Thread rule: the broker's loop."""

    def __init__(
        self,
        sender: Sender,
        after_serving: Callable[[Callable[[], object]], object],
        image: Callable[[], MetadataImage],
        partition_for: Callable[[str], int],
    ) -> None:
        """`partition_for(transactional_id)` returns the id's partition of `__transaction_state`."""
        self._queue = InterBrokerQueue(sender, dict[str, _Verification], self._take_verifications, after_serving)
        """For each coordinator, the verifications that wait, by transactional id."""
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
        """Ask the coordinator whether the partitions are part of the transaction, or add them if `adds`.

        `on_result(errors)` gets the partitions with errors: the coordinator's own (PRODUCER_FENCED as
        INVALID_PRODUCER_EPOCH), COORDINATOR_NOT_AVAILABLE if there is no coordinator, or
        NETWORK_EXCEPTION if it does not answer.
        """
        partitions = tuple(topic_partitions)
        verification = _Verification(transactional_id, producer_id, producer_epoch, partitions, adds, on_result)
        coordinator = self._coordinator(transactional_id)
        if coordinator is None:
            verification.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        waiting = self._queue.waiting_for(coordinator)
        other = waiting.get(transactional_id)
        if other is not None:
            if other.producer_epoch > producer_epoch:
                verification.fail(ErrorCode.INVALID_PRODUCER_EPOCH)
                return
            is_same = other.producer_epoch == producer_epoch
            del waiting[transactional_id]
            other.fail(ErrorCode.NETWORK_EXCEPTION if is_same else ErrorCode.INVALID_PRODUCER_EPOCH)
        waiting[transactional_id] = verification
        self._queue.send_soon()

    def _coordinator(self, transactional_id: str) -> int | None:
        image = self._image()
        partition = TopicPartition(TRANSACTION_STATE_TOPIC, self._partition_for(transactional_id))
        state = image.partition(partition)
        node = None if state is None else image.alive_broker(state.leader)
        return None if node is None else node.broker_id

    def _take_verifications(
        self, waiting: dict[str, _Verification]
    ) -> tuple[messages.AddPartitionsToTxnRequest, Callable[[messages.AddPartitionsToTxnResponse | None], object]]:
        verifications = dict(waiting)
        waiting.clear()
        request = messages.AddPartitionsToTxnRequest([each.message() for each in verifications.values()])
        return request, partial(self._on_response, verifications)

    def _on_response(
        self, verifications: dict[str, _Verification], response: messages.AddPartitionsToTxnResponse | None
    ) -> None:
        _complete(verifications, response)
        self._queue.send_all()


def _complete(verifications: dict[str, _Verification], response: messages.AddPartitionsToTxnResponse | None) -> None:
    results = () if response is None else response.results_by_transaction
    for result in results:
        errors = {
            TopicPartition(topic.name, part.partition_index): _client_error(part.partition_error_code)
            for topic in result.topic_results
            for part in topic.results_by_partition
            if part.partition_error_code
        }
        verifications.pop(result.transactional_id).on_result(errors)
    for verification in verifications.values():
        verification.fail(ErrorCode.NETWORK_EXCEPTION)


def _client_error(code: int) -> ErrorCode:
    """Return the error code that producers get, whatever their version."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode(code)

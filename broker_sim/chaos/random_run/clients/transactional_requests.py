"""The requests of a transactional producer, in the versions for its `transaction.version`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.random_run.clients.client import VERSIONS
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.protocol import messages
from broker_sim.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

TRANSACTION_VERSIONS: Final = {
    messages.ProduceRequest: {1: 11, 2: 12},
    messages.TxnOffsetCommitRequest: {1: 4, 2: 5},
    messages.EndTxnRequest: {1: 4, 2: 5},
}
"""Versions of requests by `transaction.version`, as Kafka's `TransactionManager` chooses them."""
NO_PRODUCER: Final = (-1, -1)


class TransactionalRequests:
    """Builds the requests of one producer, with its current producer id and epoch."""

    def __init__(self, transactional_id: str, version: int) -> None:
        self.version = version
        transactional = {each: by[version] for each, by in TRANSACTION_VERSIONS.items()}
        self.versions = {**VERSIONS, **transactional}
        """Versions of requests by type."""
        self.epoch = -1
        self._id = transactional_id
        self._producer_id = -1

    def take_epoch(self, producer_id: int, epoch: int) -> None:
        """Use this producer id and epoch from now on."""
        self._producer_id, self.epoch = producer_id, epoch

    def init_producer_id(self, timeout_ms: int, *, keeps_id: bool) -> messages.InitProducerIdRequest:
        """Request the next epoch; with `keeps_id` only if no other producer has done so since (KIP-360)."""
        producer = (self._producer_id, self.epoch) if keeps_id else NO_PRODUCER
        return messages.InitProducerIdRequest(self._id, timeout_ms, *producer)

    def add_partition(self, number: int) -> messages.AddPartitionsToTxnRequest:
        """Add a partition of the topic to the transaction."""
        topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(TOPIC, [number])
        return messages.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )

    def add_group(self, group: str) -> messages.AddOffsetsToTxnRequest:
        """Add the offsets of a group to the transaction."""
        return messages.AddOffsetsToTxnRequest(self._id, self._producer_id, self.epoch, group)

    @staticmethod
    def error_of_added(response: Any) -> int:
        """Return the error code of a response to `add_partition` or `add_group`."""
        if isinstance(response, messages.AddOffsetsToTxnResponse):
            return response.error_code
        (topic,) = response.results_by_topic_v3_and_below
        error_code: int = topic.results_by_partition[0].partition_error_code
        return error_code

    def batch(self, values: Sequence[bytes], sequence: int, now_ms: int) -> bytes:
        """Return a batch of the transaction."""
        return build_batch(
            [Record(value, timestamp=now_ms) for value in values],
            producer_id=self._producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )

    def produce(self, number: int, batch: bytes, timeout_ms: int) -> messages.ProduceRequest:
        """Write a batch to a partition of the topic."""
        request = produce_request((TOPIC, number), batch=batch, timeout_ms=timeout_ms)
        request.transactional_id = self._id
        return request

    def commit_offset(self, group: str, number: int, offset: int) -> messages.TxnOffsetCommitRequest:
        """Commit an offset of the group in the transaction."""
        request = messages.TxnOffsetCommitRequest
        partition = request.TxnOffsetCommitRequestPartition(number, offset)
        return request(
            transactional_id=self._id,
            group_id=group,
            producer_id=self._producer_id,
            producer_epoch=self.epoch,
            topics=[request.TxnOffsetCommitRequestTopic(TOPIC, partitions=[partition])],
        )

    def end(self, *, is_commit: bool) -> messages.EndTxnRequest:
        """Commit or abort."""
        return messages.EndTxnRequest(self._id, self._producer_id, self.epoch, is_commit)

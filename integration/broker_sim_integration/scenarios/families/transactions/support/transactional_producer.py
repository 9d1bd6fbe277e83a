"""A transactional producer of raw requests, whose epoch and sequence numbers a scenario may choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from broker_sim.protocol import messages
from broker_sim.protocol.records import Record, build_batch
from broker_sim_integration.clients.broker_client import TIMESTAMP_MS, Append, produce_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.groups import Offset
    from broker_sim_integration.clients.raw_client import Pending, Reply
    from broker_sim_integration.clients.topics import Topic

INIT_VERSION: Final = 5
ADD_PARTITIONS_VERSION: Final = 3
ADD_OFFSETS_VERSION: Final = 4
END_VERSION: Final = 5
END_NAMES_EPOCH: Final = 5
PRODUCE_VERIFIES: Final = 11
"""Last version of Produce whose partitions must have been added to the transaction before."""
PRODUCE_ADDS: Final = 13
TXN_OFFSETS_VERIFY: Final = 4
"""Last version of TxnOffsetCommit that needs AddOffsetsToTxn before."""
TXN_OFFSETS_ADD: Final = 5
TRANSACTION_TIMEOUT_MS: Final = 60_000


class ProduceOptions(TypedDict, total=False):
    """The options of `TransactionalProducer.start_produce`."""

    partition: int
    sequence: int | None
    epoch: int | None
    is_transactional: bool
    acks: int
    timeout_ms: int
    version: int


class TransactionalProducer:
    """One transactional id, as a client that sends to its coordinator over `client`.

    `producer_id` and `epoch` come from the coordinator's last response. Methods wait for the response and
    return it, except those called `start_...`.
    """

    def __init__(self, client: BrokerClient, transactional_id: str) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    def again(self, client: BrokerClient | None = None) -> TransactionalProducer:
        """Return another producer of the same id with the same state: the zombie, or its successor."""
        other = TransactionalProducer(client or self.client, self.transactional_id)
        other.producer_id, other.epoch = self.producer_id, self.epoch
        other._sequences = dict(self._sequences)
        return other

    def init(
        self,
        *,
        timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        producer_id: int = -1,
        epoch: int = -1,
        version: int = INIT_VERSION,
    ) -> Reply[messages.InitProducerIdResponse]:
        """Send InitProducerId once, and take over the id and epoch of a successful response."""
        request = messages.InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms
        )
        if producer_id != -1 or epoch != -1:
            request.producer_id, request.producer_epoch = producer_id, epoch
        reply = self.client.request(request, version, messages.InitProducerIdResponse)
        if not reply.message.error_code:
            self._take(reply.message.producer_id, reply.message.producer_epoch)
        return reply

    def add_partitions(
        self, *partitions: tuple[Topic, int], version: int = ADD_PARTITIONS_VERSION
    ) -> Reply[messages.AddPartitionsToTxnResponse]:
        """Send AddPartitionsToTxn as a client does, up to version 3."""
        request = messages.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=_by_topic(partitions),
        )
        return self.client.request(request, version, messages.AddPartitionsToTxnResponse)

    def add_as_broker(
        self, *partitions: tuple[Topic, int], verify_only: bool, version: int = 5
    ) -> Reply[messages.AddPartitionsToTxnResponse]:
        """Send AddPartitionsToTxn as a partition leader does, since version 4."""
        request = messages.AddPartitionsToTxnRequest
        transaction = request.AddPartitionsToTxnTransaction(
            self.transactional_id, self.producer_id, self.epoch, verify_only, _by_topic(partitions)
        )
        return self.client.request(request(transactions=[transaction]), version, messages.AddPartitionsToTxnResponse)

    def add_offsets(self, group: str, *, version: int = ADD_OFFSETS_VERSION) -> Reply[messages.AddOffsetsToTxnResponse]:
        """Send AddOffsetsToTxn; return the response."""
        request = messages.AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, group)
        return self.client.request(request, version, messages.AddOffsetsToTxnResponse)

    def start_produce(
        self,
        leader: BrokerClient,
        topic: Topic,
        *values: bytes,
        partition: int = 0,
        sequence: int | None = None,
        epoch: int | None = None,
        is_transactional: bool = True,
        acks: int = -1,
        timeout_ms: int = 30_000,
        version: int = PRODUCE_ADDS,
    ) -> Pending[messages.ProduceResponse]:
        """Send a batch to a partition's leader, with the next sequence number unless `sequence` is given."""
        where = (topic.name, partition)
        first = self._sequences.get(where, 0) if sequence is None else sequence
        self._sequences[where] = first + len(values)
        batch = build_batch(
            [Record(value, timestamp=TIMESTAMP_MS) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=first,
            is_transactional=is_transactional,
        )
        appends = [Append(topic, partition, batch)]
        request = produce_request(appends, acks=acks, timeout_ms=timeout_ms, version=version)
        request.transactional_id = self.transactional_id
        return leader.send(request, version, messages.ProduceResponse)

    def produce(
        self, leader: BrokerClient, topic: Topic, *values: bytes, **options: Unpack[ProduceOptions]
    ) -> Reply[messages.ProduceResponse]:
        """Send a batch and wait for the response; see `start_produce`."""
        return self.start_produce(leader, topic, *values, **options).result()

    def commit_offsets(
        self,
        coordinator: BrokerClient,
        group: str,
        *offsets: Offset,
        member_id: str = "",
        generation: int = -1,
        instance_id: str | None = None,
        version: int = TXN_OFFSETS_ADD,
    ) -> Reply[messages.TxnOffsetCommitResponse]:
        """Send TxnOffsetCommit to the group's coordinator; since version 3 it contains the member."""
        message = messages.TxnOffsetCommitRequest
        topics: dict[str, messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = {}
        for offset in offsets:
            name = offset.topic.name
            topic = topics.setdefault(name, message.TxnOffsetCommitRequestTopic(name))
            topic.partitions.append(
                message.TxnOffsetCommitRequestPartition(
                    offset.partition, offset.offset, offset.leader_epoch, offset.metadata
                )
            )
        request = message(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=list(topics.values()),
        )
        return coordinator.request(request, version, messages.TxnOffsetCommitResponse)

    def end(
        self, *, committed: bool = True, epoch: int | None = None, version: int = END_VERSION
    ) -> Reply[messages.EndTxnResponse]:
        """Send EndTxn, and take over the next epoch if the response has one."""
        request = messages.EndTxnRequest(
            self.transactional_id, self.producer_id, self.epoch if epoch is None else epoch, committed
        )
        reply = self.client.request(request, version, messages.EndTxnResponse)
        if version >= END_NAMES_EPOCH and not reply.message.error_code:
            self._take(reply.message.producer_id, reply.message.producer_epoch)
        return reply

    def _take(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch


def _by_topic(
    partitions: Iterable[tuple[Topic, int]],
) -> list[messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]:
    topics: dict[str, messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = {}
    for topic, partition in partitions:
        wanted = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(topic.name)
        topics.setdefault(topic.name, wanted).partitions.append(partition)
    return list(topics.values())

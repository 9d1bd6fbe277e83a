"""Requests to one broker, in the form in which scenarios write them, on top of a raw connection.

Methods `start_...` do not wait: they return a `Pending`, whose response is timed when it arrives.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.protocol import messages
from broker_sim.protocol.records import Record, build_batch
from broker_sim_integration.clients.raw_client import Pending, RawConnection, Reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim_integration.clients.topics import Topic

FETCH_VERSION = 17
FETCH_WITH_TOPIC_IDS = 13
FETCH_WITH_REPLICA_STATE = 15
PRODUCE_VERSION = 13
PRODUCE_WITH_TOPIC_IDS = 13
LIST_OFFSETS_VERSION = 11
DELETE_RECORDS_VERSION = 2
OFFSET_FOR_LEADER_EPOCH_VERSION = 4
INIT_PRODUCER_ID_VERSION = 5

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
MEBIBYTE = 1 << 20
FIFTY_MEBIBYTES = 50 * MEBIBYTE
TIMESTAMP_MS = 1_700_000_000_000
"""The default timestamp of records: the same on both sides and in every run."""


class Append(NamedTuple):
    """The records of a produce request for one partition."""

    topic: Topic
    partition: int
    records: bytes


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a fetch request in one partition."""

    topic: Topic
    partition: int = 0
    _: KW_ONLY
    offset: int = 0
    max_bytes: int = MEBIBYTE
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


def batch_of(
    values: Iterable[bytes],
    *,
    timestamp_ms: int = TIMESTAMP_MS,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Return one record batch with these values."""
    return build_batch(
        [Record(value, timestamp=timestamp_ms) for value in values],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


class BrokerClient(RawConnection):
    """A raw connection with methods for the requests of scenarios; see `RawConnection` for threads."""

    def start_produce(
        self, *appends: Append, acks: int = -1, timeout_ms: int = 30_000, version: int = PRODUCE_VERSION
    ) -> Pending[messages.ProduceResponse]:
        """Send one produce request for any number of partitions."""
        request = produce_request(appends, acks=acks, timeout_ms=timeout_ms, version=version)
        return self.send(request, version, messages.ProduceResponse)

    def produce(
        self,
        topic: Topic,
        *values: bytes,
        partition: int = 0,
        acks: int = -1,
        timeout_ms: int = 30_000,
        version: int = PRODUCE_VERSION,
    ) -> Reply[messages.ProduceResponse]:
        """Append `values` as one batch to one partition and wait for the response."""
        append = Append(topic, partition, batch_of(values))
        return self.start_produce(append, acks=acks, timeout_ms=timeout_ms, version=version).result()

    def produce_keyed(self, topic: Topic, key: bytes | None, value: bytes | None) -> Reply[messages.ProduceResponse]:
        """Append one record with a key, which compacted topics require, and wait for the response."""
        batch = build_batch([Record(value, key, TIMESTAMP_MS)])
        return self.start_produce(Append(topic, 0, batch)).result()

    def produce_unanswered(self, topic: Topic, *values: bytes, partition: int = 0) -> None:
        """Append with acks=0, so without a response."""
        append = Append(topic, partition, batch_of(values))
        request = produce_request([append], acks=0, timeout_ms=30_000, version=PRODUCE_VERSION)
        self.send_unanswered(request, PRODUCE_VERSION)

    def start_fetch(
        self,
        *positions: Position,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = FIFTY_MEBIBYTES,
        isolation_level: int = 0,
        version: int = FETCH_VERSION,
    ) -> Pending[messages.FetchResponse]:
        """Send one fetch request, without a session, for any number of partitions."""
        request = fetch_request(positions, version=version)
        request.max_wait_ms = max_wait_ms
        request.min_bytes = min_bytes
        request.max_bytes = max_bytes
        request.isolation_level = isolation_level
        return self.send(request, version, messages.FetchResponse)

    def fetch(
        self,
        topic: Topic,
        offset: int = 0,
        *,
        partition: int = 0,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = FIFTY_MEBIBYTES,
        partition_max_bytes: int = MEBIBYTE,
        isolation_level: int = 0,
        version: int = FETCH_VERSION,
    ) -> Reply[messages.FetchResponse]:
        """Fetch from one partition and wait for the response."""
        return self.start_fetch(
            Position(topic, partition, offset=offset, max_bytes=partition_max_bytes),
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            version=version,
        ).result()

    def fetch_as_replica(
        self, topic: Topic, replica_id: int, *, replica_epoch: int = -1, offset: int = 0, version: int = FETCH_VERSION
    ) -> Reply[messages.FetchResponse]:
        """Fetch with the replica id of a follower, which the broker may reject, and wait for the response."""
        request = messages.FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=MEBIBYTE,
            topics=_fetch_topics(
                [Position(topic, offset=offset, leader_epoch=0)], by_id=version >= FETCH_WITH_TOPIC_IDS
            ),
        )
        if version >= FETCH_WITH_REPLICA_STATE:
            request.replica_state = request.ReplicaState(replica_id, replica_epoch)
        else:
            request.replica_id = replica_id
        return self.request(request, version, messages.FetchResponse)

    def list_offset(
        self,
        topic: Topic,
        timestamp: int = LATEST,
        *,
        partition: int = 0,
        leader_epoch: int = -1,
        isolation_level: int = 0,
        version: int = LIST_OFFSETS_VERSION,
    ) -> Reply[messages.ListOffsetsResponse]:
        """Look up one offset by timestamp, or by `LATEST`, `EARLIEST`, `MAX_TIMESTAMP`."""
        request = messages.ListOffsetsRequest
        wanted = request.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=leader_epoch, timestamp=timestamp
        )
        named = request.ListOffsetsTopic(topic.name, [wanted])
        return self.request(
            request(replica_id=-1, isolation_level=isolation_level, topics=[named]),
            version,
            messages.ListOffsetsResponse,
        )

    def start_delete_records(
        self, topic: Topic, offset: int, *, partition: int = 0, timeout_ms: int = 30_000
    ) -> Pending[messages.DeleteRecordsResponse]:
        """Send a request to delete all records below `offset`; -1 means the high watermark."""
        request = messages.DeleteRecordsRequest
        wanted = request.DeleteRecordsPartition(partition_index=partition, offset=offset)
        named = request.DeleteRecordsTopic(topic.name, [wanted])
        return self.send(request([named], timeout_ms), DELETE_RECORDS_VERSION, messages.DeleteRecordsResponse)

    def offset_for_leader_epoch(
        self, topic: Topic, leader_epoch: int, *, partition: int = 0, current_leader_epoch: int = -1
    ) -> Reply[messages.OffsetForLeaderEpochResponse]:
        """Look up the end offset of a leader epoch."""
        request = messages.OffsetForLeaderEpochRequest
        wanted = request.OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=current_leader_epoch, leader_epoch=leader_epoch
        )
        named = request.OffsetForLeaderTopic(topic.name, [wanted])
        return self.request(
            request(replica_id=-1, topics=[named]),
            OFFSET_FOR_LEADER_EPOCH_VERSION,
            messages.OffsetForLeaderEpochResponse,
        )

    def init_producer_id(self) -> messages.InitProducerIdResponse:
        """Return the response to InitProducerId without a transactional id, for an idempotent producer."""
        request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        return self.request(request, INIT_PRODUCER_ID_VERSION, messages.InitProducerIdResponse).message


def produce_request(appends: Sequence[Append], *, acks: int, timeout_ms: int, version: int) -> messages.ProduceRequest:
    """Return a produce request, with topic ids since version 13, with names before."""
    request = messages.ProduceRequest
    by_id = version >= PRODUCE_WITH_TOPIC_IDS
    topics = {append.topic: append.topic.named_in(request.TopicProduceData(), by_id=by_id) for append in appends}
    for append in appends:
        data = request.PartitionProduceData(append.partition, append.records)
        topics[append.topic].partition_data.append(data)
    return request(acks=acks, timeout_ms=timeout_ms, topic_data=list(topics.values()))


def fetch_request(positions: Sequence[Position], *, version: int) -> messages.FetchRequest:
    """Return a fetch request with a max_wait_ms of 500, with topic ids since version 13, with names before."""
    topics = _fetch_topics(positions, by_id=version >= FETCH_WITH_TOPIC_IDS)
    return messages.FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=FIFTY_MEBIBYTES, isolation_level=0, topics=topics
    )


def _fetch_topics(positions: Sequence[Position], *, by_id: bool) -> list[messages.FetchRequest.FetchTopic]:
    request = messages.FetchRequest
    topics = {
        position.topic: position.topic.named_in(request.FetchTopic(), by_id=by_id, name_field="topic")
        for position in positions
    }
    for position in positions:
        topics[position.topic].partitions.append(
            request.FetchPartition(
                partition=position.partition,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.offset,
                last_fetched_epoch=position.last_fetched_epoch,
                partition_max_bytes=position.max_bytes,
            )
        )
    return list(topics.values())

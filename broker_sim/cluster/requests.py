"""Builders of the requests that simulated clients send most."""

from __future__ import annotations

from broker_sim.protocol import messages
from broker_sim.protocol.records import build_batch

PRODUCE_VERSION = 9
FETCH_VERSION = 12
OFFSET_FETCH_VERSION = 9
"""The newest versions in which topics have names, not ids."""

Key = tuple[str, int]


def produce_request(
    *keys: Key,
    values: tuple[bytes, ...] = (b"value",),
    acks: int = -1,
    timeout_ms: int = 30_000,
    batch: bytes | None = None,
) -> messages.ProduceRequest:
    """Return a request that sends `values` (or a whole `batch`) to each (topic, partition)."""
    records = build_batch(values) if batch is None else batch
    return messages.ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            messages.ProduceRequest.TopicProduceData(
                name=topic, partition_data=[messages.ProduceRequest.PartitionProduceData(index=number, records=records)]
            )
            for topic, number in keys
        ],
    )


def fetch_request(
    *keys: Key,
    offset: int = 0,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 0x7FFFFFFF,
    partition_max_bytes: int = 1_048_576,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    replica_id: int = -1,
    isolation_level: int = 0,
) -> messages.FetchRequest:
    """Return a fetch of each (topic, partition) from `offset`."""
    return messages.FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_epoch=-1,
        topics=[
            messages.FetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    messages.FetchRequest.FetchPartition(
                        partition=number,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=leader_epoch,
                        last_fetched_epoch=last_fetched_epoch,
                    )
                ],
            )
            for topic, number in keys
        ],
    )


def offset_fetch_request(group: str, key: Key, *, require_stable: bool) -> messages.OffsetFetchRequest:
    """Return a question for the offset that a group has committed of a partition."""
    topic, number = key
    request = messages.OffsetFetchRequest
    topics = [request.OffsetFetchRequestTopics(name=topic, partition_indexes=[number])]
    groups = [request.OffsetFetchRequestGroup(group, topics=topics)]
    return request(groups=groups, require_stable=require_stable)

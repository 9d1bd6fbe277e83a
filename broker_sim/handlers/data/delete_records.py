"""DeleteRecords (key 21), versions 0-2; mirrors ``KafkaApis.handleDeleteRecordsRequest``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import is_internal_topic
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.replica import DeleteRecordsPartitionStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_delete_records"]


def handle_delete_records(
    request: messages.DeleteRecordsRequest,
    context: RequestContext,
    respond: Callable[[messages.DeleteRecordsResponse], None],
) -> None:
    """Delete up to the offsets asked for; answer when every living replica has, or at the timeout."""
    offsets: dict[TopicPartition, int] = {}
    refused: dict[TopicPartition, DeleteRecordsPartitionStatus] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition_index)
            if context.broker.image.partition(key) is None:
                refused[key] = DeleteRecordsPartitionStatus(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif is_internal_topic(topic.name):
                refused[key] = DeleteRecordsPartitionStatus(ErrorCode.INVALID_TOPIC_EXCEPTION)
            else:
                offsets[key] = partition.offset

    def on_deleted(statuses: dict[TopicPartition, DeleteRecordsPartitionStatus]) -> None:
        respond(_build_response(statuses | refused))

    context.broker.replica_manager.delete_records(
        offsets, on_deleted, timeout_ms=request.timeout_ms, client_id=context.client_id
    )


def _build_response(
    statuses: dict[TopicPartition, DeleteRecordsPartitionStatus],
) -> messages.DeleteRecordsResponse:
    response = messages.DeleteRecordsResponse()
    topics: dict[str, messages.DeleteRecordsResponse.DeleteRecordsTopicResult] = {}
    for key, status in statuses.items():
        topic = topics.get(key.topic)
        if topic is None:
            topic = topics[key.topic] = messages.DeleteRecordsResponse.DeleteRecordsTopicResult(
                name=key.topic
            )
            response.topics.append(topic)
        topic.partitions.append(
            messages.DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=key.partition,
                low_watermark=status.low_watermark,
                error_code=status.error_code,
            )
        )
    return response

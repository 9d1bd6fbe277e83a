"""DeleteRecords (key 21), versions 0-2; mirrors `KafkaApis.handleDeleteRecordsRequest`.

Behaviour:
* answers when every live replica has moved its log start offset, or at the timeout
* offset -1 stands for the high watermark
* records of internal topics, and of topics with cleanup.policy=compact, cannot be deleted

Version notes: 2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.handlers.support.partition_errors import raise_injected_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_name import is_internal_topic
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.replica import DeleteRecordsPartitionStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext


def handle_delete_records(
    request: messages.DeleteRecordsRequest,
    context: RequestContext,
    respond: Callable[[messages.DeleteRecordsResponse], None],
) -> None:
    """Delete the records before the requested offsets."""
    offsets: dict[TopicPartition, int] = {}
    refused: dict[TopicPartition, DeleteRecordsPartitionStatus] = {}
    names = (topic.name for topic in request.topics)
    denied = unauthorized_names(context, AclOperation.DELETE, ResourceType.TOPIC, names)
    for topic in request.topics:
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition_index)
            try:
                _check(context, key, denied)
            except ApiError as error:
                refused[key] = DeleteRecordsPartitionStatus(error.error_code)
            else:
                offsets[key] = partition.offset

    def on_deleted(statuses: dict[TopicPartition, DeleteRecordsPartitionStatus]) -> None:
        respond(_build_response(statuses | refused))

    context.broker.replica_manager.delete_records(
        offsets, on_deleted, timeout_ms=request.timeout_ms, client_id=context.client_id
    )


def _check(context: RequestContext, key: TopicPartition, denied: AbstractSet[str]) -> None:
    """Raise ApiError if the client cannot delete records of the partition."""
    if key.topic in denied:
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    raise_injected_error(context, key.topic, key.partition)
    if context.broker.image.partition(key) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if is_internal_topic(key.topic):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)


def _build_response(statuses: dict[TopicPartition, DeleteRecordsPartitionStatus]) -> messages.DeleteRecordsResponse:
    response = messages.DeleteRecordsResponse()
    topics: dict[str, messages.DeleteRecordsResponse.DeleteRecordsTopicResult] = {}
    for key, status in statuses.items():
        topic = topics.get(key.topic)
        if topic is None:
            topic = topics[key.topic] = messages.DeleteRecordsResponse.DeleteRecordsTopicResult(name=key.topic)
            response.topics.append(topic)
        topic.partitions.append(
            messages.DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=key.partition, low_watermark=status.low_watermark, error_code=status.error_code
            )
        )
    return response

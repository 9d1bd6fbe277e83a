"""OffsetDelete (key 47), version 0; mirrors `KafkaApis.handleOffsetDeleteRequest`.

Behaviour:
* partitions that do not exist fail alone; the group is checked even if there are no others
* offsets of topics with a subscribed member are kept: GROUP_SUBSCRIBED_TO_TOPIC
* answered once the in-sync replicas have the deletion
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.handlers.support.partition_errors import denied_or_injected_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_partition import by_topic
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

Topic = messages.OffsetDeleteResponse.OffsetDeleteResponseTopic
Partition = messages.OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle_offset_delete(
    request: messages.OffsetDeleteRequest,
    context: RequestContext,
    respond: Callable[[messages.OffsetDeleteResponse], None],
) -> None:
    """Delete the offsets of the partitions that exist."""
    denial = authorization_error(context, AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    if denial:
        respond(refuse(request, context, denial))
        return
    names = (topic.name for topic in request.topics)
    denied = unauthorized_names(context, AclOperation.READ, ResourceType.TOPIC, names)
    image = context.broker.image
    valid: list[tuple[str, int]] = []
    refused: list[tuple[tuple[str, int], ErrorCode]] = []
    for requested_topic in request.topics:
        topic = image.topics.get(requested_topic.name)
        for partition in requested_topic.partitions:
            index = partition.partition_index
            error_code = denied_or_injected_error(context, requested_topic.name, index, denied)
            if not error_code and (topic is None or topic.partition(index) is None):
                error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if error_code:
                refused.append(((requested_topic.name, index), error_code))
            else:
                valid.append((requested_topic.name, index))

    def done(errors: Sequence[ErrorCode]) -> None:
        topics = by_topic(
            (name, Partition(index, error_code))
            for (name, index), error_code in [*refused, *zip(valid, errors, strict=True)]
        )
        respond(messages.OffsetDeleteResponse(topics=[Topic(*entry) for entry in topics.items()]))

    def fail(error: ApiError) -> None:
        respond(refuse(request, context, error.error_code))

    context.broker.groups.offset_delete(request.group_id, valid, done, fail)

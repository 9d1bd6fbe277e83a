"""StreamsGroupDescribe (key 89), version 0; mirrors `KafkaApis.handleStreamsGroupDescribe`.

Behaviour:
* streams groups only: any other is GROUP_ID_NOT_FOUND, an empty id INVALID_GROUP_ID
* a group whose topology has topics that the client may not describe is TOPIC_AUTHORIZATION_FAILED
* the groups are in the order of Kafka's hash map of partitions, not in that of the request
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.streams.streams_version import has_streams_groups
from broker_sim.handlers.support.authorization import authorized_operations, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_streams_group_describe"]

Described = messages.StreamsGroupDescribeResponse.DescribedGroup
TOPICS_HIDDEN: Final = (
    "The described group uses topics that the client is not authorized to describe."
)


def handle_streams_group_describe(
    request: messages.StreamsGroupDescribeRequest,
    context: RequestContext,
    respond: Callable[[messages.StreamsGroupDescribeResponse], None],
) -> None:
    """Describe each group as it is now."""
    if not has_streams_groups(context):
        code = ErrorCode.UNSUPPORTED_VERSION
        groups = [Described(code, group_id=group_id) for group_id in request.group_ids]
    else:
        groups = _describe(request.group_ids, context, request.include_authorized_operations)
    respond(messages.StreamsGroupDescribeResponse(groups=groups))


def _describe(
    asked: Sequence[str], context: RequestContext, includes_operations: bool
) -> list[messages.StreamsGroupDescribeResponse.DescribedGroup]:
    """Return the groups, first those that the client may not describe."""
    describe = AclOperation.DESCRIBE
    denied = unauthorized_names(context, describe, ResourceType.GROUP, asked)
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    refused = [Described(code, group_id=group_id) for group_id in asked if group_id in denied]
    groups = context.broker.groups.streams.describe(
        [group_id for group_id in asked if group_id not in denied]
    )
    if includes_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = authorized_operations(
                    context, ResourceType.GROUP, group.group_id
                )
    names = (name for group in groups for name in _topics_of(group))
    hidden = unauthorized_names(context, describe, ResourceType.TOPIC, names)
    return refused + [
        Described(ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPICS_HIDDEN, group_id=group.group_id)
        if not hidden.isdisjoint(_topics_of(group))
        else group
        for group in groups
    ]


def _topics_of(group: messages.StreamsGroupDescribeResponse.DescribedGroup) -> list[str]:
    """Return the topics of the group's topology."""
    names: list[str] = []
    subtopologies = None if group.topology is None else group.topology.subtopologies
    for subtopology in subtopologies or ():
        names += subtopology.source_topics
        names += subtopology.repartition_sink_topics
        names += [topic.name for topic in subtopology.repartition_source_topics]
        names += [topic.name for topic in subtopology.state_changelog_topics]
    return names

"""ShareGroupDescribe (key 77), version 1; mirrors `KafkaApis.handleShareGroupDescribe`.

Behaviour:
* share groups only: any other is GROUP_ID_NOT_FOUND, an empty id INVALID_GROUP_ID
* a group whose members have topics that the client may not describe is TOPIC_AUTHORIZATION_FAILED
* the groups are in the order of Kafka's hash map of partitions, not in that of the request
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.share.share_version import has_share_groups
from broker_sim.handlers.support.authorization import (
    TOPICS_HIDDEN,
    authorized_operations,
    unauthorized_names,
)
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_share_group_describe"]

Described = messages.ShareGroupDescribeResponse.DescribedGroup


def handle_share_group_describe(
    request: messages.ShareGroupDescribeRequest,
    context: RequestContext,
    respond: Callable[[messages.ShareGroupDescribeResponse], None],
) -> None:
    """Describe each group as it is now."""
    if not has_share_groups(context):
        code = ErrorCode.UNSUPPORTED_VERSION
        groups = [Described(code, group_id=group_id) for group_id in request.group_ids]
    else:
        groups = _describe(request.group_ids, context)
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = authorized_operations(
                    context, ResourceType.GROUP, group.group_id
                )
    respond(messages.ShareGroupDescribeResponse(groups=groups))


def _describe(
    asked: Sequence[str], context: RequestContext
) -> list[messages.ShareGroupDescribeResponse.DescribedGroup]:
    """Return the groups, first those that the client may not describe."""
    describe = AclOperation.DESCRIBE
    denied = unauthorized_names(context, describe, ResourceType.GROUP, asked)
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    refused = [Described(code, group_id=group_id) for group_id in asked if group_id in denied]
    groups = context.broker.groups.shares.describe(
        [group_id for group_id in asked if group_id not in denied]
    )
    names = (name for group in groups for name in _topics_of(group))
    hidden = unauthorized_names(context, describe, ResourceType.TOPIC, names)
    return refused + [
        Described(ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPICS_HIDDEN, group_id=group.group_id)
        if not hidden.isdisjoint(_topics_of(group))
        else group
        for group in groups
    ]


def _topics_of(group: messages.ShareGroupDescribeResponse.DescribedGroup) -> list[str]:
    """Return the topics that members have."""
    return [
        topic.topic_name for member in group.members for topic in member.assignment.topic_partitions
    ]

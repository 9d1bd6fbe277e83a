"""ConsumerGroupDescribe (key 69), versions 0-1; mirrors `KafkaApis.handleConsumerGroupDescribe`.

Behaviour:
* groups of the consumer protocol only: any other is GROUP_ID_NOT_FOUND, an empty id INVALID_GROUP_ID
* what a member has to give up counts as its own until it has done so
* a group whose members have topics that the client may not describe is TOPIC_AUTHORIZATION_FAILED
* the groups are in the order of Kafka's hash map of partitions, not in that of the request

Version notes: 1 tells which protocol a member uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.group.group import CONSUMER
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

__all__ = ["handle_consumer_group_describe"]

Described = messages.ConsumerGroupDescribeResponse.DescribedGroup


def handle_consumer_group_describe(
    request: messages.ConsumerGroupDescribeRequest,
    context: RequestContext,
    respond: Callable[[messages.ConsumerGroupDescribeResponse], None],
) -> None:
    """Describe each group as it is now."""
    if CONSUMER not in context.broker.config.group_coordinator_rebalance_protocols:
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
    respond(messages.ConsumerGroupDescribeResponse(groups=groups))


def _describe(
    asked: Sequence[str], context: RequestContext
) -> list[messages.ConsumerGroupDescribeResponse.DescribedGroup]:
    """Return the groups, first those that the client may not describe."""
    describe = AclOperation.DESCRIBE
    denied = unauthorized_names(context, describe, ResourceType.GROUP, asked)
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    refused = [Described(code, group_id=group_id) for group_id in asked if group_id in denied]
    groups = context.broker.groups.consumer_group_describe(
        [group_id for group_id in asked if group_id not in denied]
    )
    names = (name for group in groups for name in _topics_of(group))
    hidden = unauthorized_names(context, describe, ResourceType.TOPIC, names)
    if hidden:
        groups = [
            Described(ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPICS_HIDDEN, group_id=group.group_id)
            if not hidden.isdisjoint(_topics_of(group))
            else group
            for group in groups
        ]
    return refused + groups


def _topics_of(
    group: messages.ConsumerGroupDescribeResponse.DescribedGroup,
) -> list[str]:
    """Return the topics that members have, or are to have."""
    return [
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    ]

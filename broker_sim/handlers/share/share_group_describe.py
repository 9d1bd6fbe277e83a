"""ShareGroupDescribe (key 77), version 1; mirrors `KafkaApis.handleShareGroupDescribe`.

Behaviour:
* describes share groups; any other is GROUP_ID_NOT_FOUND, an empty id INVALID_GROUP_ID
* a group whose members have topics that the client may not describe is TOPIC_AUTHORIZATION_FAILED
* the groups are in the order of Kafka's hash map of partitions, not in that of the request
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.handlers.support.groups import described_groups, has_share_groups
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

Described = messages.ShareGroupDescribeResponse.DescribedGroup


def handle_share_group_describe(
    request: messages.ShareGroupDescribeRequest,
    context: RequestContext,
    respond: Callable[[messages.ShareGroupDescribeResponse], None],
) -> None:
    """Describe each group as it is now."""
    groups = described_groups(
        context,
        request,
        group_type=Described,
        is_served=has_share_groups(context),
        describe=context.broker.groups.shares.describe,
        topics_of=_topics_of,
    )
    respond(messages.ShareGroupDescribeResponse(groups=groups))


def _topics_of(group: messages.ShareGroupDescribeResponse.DescribedGroup) -> list[str]:
    """Return the topics that are assigned to members."""
    return [topic.topic_name for member in group.members for topic in member.assignment.topic_partitions]

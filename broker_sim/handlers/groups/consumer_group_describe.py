"""ConsumerGroupDescribe (key 69), versions 0-1; mirrors `KafkaApis.handleConsumerGroupDescribe`.

Behaviour:
* describes groups of the consumer protocol; any other is GROUP_ID_NOT_FOUND, an empty id INVALID_GROUP_ID
* partitions that a member has yet to revoke count as its own
* a group whose members have topics that the client may not describe is TOPIC_AUTHORIZATION_FAILED
* the groups are in the order of Kafka's hash map of partitions, not in that of the request

Version notes: 1 has the protocol of each member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.handlers.support.groups import described_groups, has_consumer_protocol
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

Described = messages.ConsumerGroupDescribeResponse.DescribedGroup


def handle_consumer_group_describe(
    request: messages.ConsumerGroupDescribeRequest,
    context: RequestContext,
    respond: Callable[[messages.ConsumerGroupDescribeResponse], None],
) -> None:
    """Describe each group as it is now."""
    groups = described_groups(
        context,
        request,
        group_type=Described,
        is_served=has_consumer_protocol(context),
        describe=context.broker.groups.consumer_group_describe,
        topics_of=_topics_of,
    )
    respond(messages.ConsumerGroupDescribeResponse(groups=groups))


def _topics_of(group: messages.ConsumerGroupDescribeResponse.DescribedGroup) -> list[str]:
    """Return the topics of the members' current and target assignments."""
    return [
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    ]

"""StreamsGroupDescribe (key 89), versions 0 and 1; mirrors `KafkaApis.handleStreamsGroupDescribe`.

Behaviour:
* describes streams groups; any other is GROUP_ID_NOT_FOUND, an empty id INVALID_GROUP_ID
* a group whose topology has topics that the client may not describe is TOPIC_AUTHORIZATION_FAILED
* version 1 has the assignor, and the application's description of the topology if it is stored (KIP-1331)
* the groups are in the order of Kafka's hash map of partitions, not in that of the request
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.handlers.support.groups import described_groups, has_streams_groups
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

Described = messages.StreamsGroupDescribeResponse.DescribedGroup
TOPICS_HIDDEN: Final = "The described group uses topics that the client is not authorized to describe."


def handle_streams_group_describe(
    request: messages.StreamsGroupDescribeRequest,
    context: RequestContext,
    respond: Callable[[messages.StreamsGroupDescribeResponse], None],
) -> None:
    """Describe each group as it is now."""
    groups = described_groups(
        context,
        request,
        group_type=Described,
        is_served=has_streams_groups(context),
        describe=partial(context.broker.groups.streams.describe, with_description=request.include_topology_description),
        topics_of=_topics_of,
        hidden_text=TOPICS_HIDDEN,
    )
    respond(messages.StreamsGroupDescribeResponse(groups=groups))


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

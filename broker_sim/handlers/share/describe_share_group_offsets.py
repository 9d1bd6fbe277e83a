"""DescribeShareGroupOffsets (key 90), versions 0-1; mirrors `KafkaApis.handleDescribeShareGroupOffsetsRequest`.

Behaviour:
* returns the start offset of each share partition, as its share coordinator has it
* a share partition without state, or whose state cannot be read, has the offset -1 and no error
* a group without a list of topics has all topics with state that the client may describe; topics in the request
  that it may not describe have an error

Version notes: 1 adds the lag (KIP-1226), for which the leaders of the partitions are queried.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.share.checks import group_error
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

    OnGroup = Callable[[messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup], object]

Request = messages.DescribeShareGroupOffsetsRequest
Response = messages.DescribeShareGroupOffsetsResponse
Group = Response.DescribeShareGroupOffsetsResponseGroup
Topic = Response.DescribeShareGroupOffsetsResponseTopic
Row = Response.DescribeShareGroupOffsetsResponsePartition


def handle_describe_share_group_offsets(
    request: messages.DescribeShareGroupOffsetsRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeShareGroupOffsetsResponse], None],
) -> None:
    """Describe the offsets of each group, and answer once all groups are described."""
    groups: list[messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup]
    groups = [Group(described.group_id) for described in request.groups]
    waiting = set(range(len(groups)))

    def take(
        index: int, group: messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
    ) -> None:
        groups[index] = group
        waiting.discard(index)
        if not waiting:
            respond(Response(groups=groups))

    if not groups:
        respond(Response())
    for index, described in enumerate(request.groups):
        _describe(described, context, partial(take, index))


def _describe(
    described: messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup,
    context: RequestContext,
    on_group: OnGroup,
) -> None:
    """Describe one group: the topics of the request, or all topics with state."""
    error_code = group_error(context, AclOperation.DESCRIBE, described.group_id)
    if error_code:
        on_group(Group(described.group_id, error_code=error_code))
    elif described.topics is None:
        context.broker.groups.shares.describe_offsets(
            described,
            lambda group: on_group(_without_hidden(group, context)),
            partial(_fail, described.group_id, on_group),
        )
    elif not described.topics:
        on_group(Group(described.group_id))
    else:
        hidden = _hidden_topics(context, [topic.topic_name for topic in described.topics])
        visible_topics = [topic for topic in described.topics if topic.topic_name not in hidden]
        refused = [
            Topic(topic.topic_name, partitions=[_refused(number) for number in topic.partitions])
            for topic in described.topics
            if topic.topic_name in hidden
        ]

        def take(group: messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup) -> None:
            group.topics += refused
            on_group(group)

        context.broker.groups.shares.describe_offsets(
            Request.DescribeShareGroupOffsetsRequestGroup(described.group_id, visible_topics),
            take,
            partial(_fail, described.group_id, on_group),
        )


def _fail(group_id: str, on_group: OnGroup, error: ApiError) -> None:
    on_group(Group(group_id, error_code=error.error_code, error_message=ERROR_TEXTS.get(error.error_code)))


def _hidden_topics(context: RequestContext, names: Collection[str]) -> Collection[str]:
    """Return the topics that the client may not describe."""
    return unauthorized_names(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)


def _without_hidden(
    group: messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup, context: RequestContext
) -> messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup:
    """Return the group without the topics that the client may not describe."""
    hidden = _hidden_topics(context, [topic.topic_name for topic in group.topics])
    group.topics = [topic for topic in group.topics if topic.topic_name not in hidden]
    return group


def _refused(number: int) -> messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition:
    """Return the row of a partition whose topic the client may not describe."""
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return Row(number, -1, lag=-1, error_code=code, error_message=ERROR_TEXTS[code])

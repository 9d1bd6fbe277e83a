"""DescribeShareGroupOffsets (key 90), versions 0-1; mirrors `KafkaApis.handleDescribeShareGroupOffsetsRequest`.

Behaviour:
* tells where each share partition begins, which is what the share coordinator has of it
* what has no state, or cannot be read, begins at -1, without an error
* a group without a list of topics is told of with all that have state, apart from hidden topics; of
  named topics the hidden ones have an error

Version notes: 1 brings the lag (KIP-1226), which is asked for at the leaders of the partitions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.share.share_group_refusal import share_group_refusal
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

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
    """Describe the offsets of each group, and answer once all are there."""
    groups: list[messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup]
    groups = [Group(asked.group_id) for asked in request.groups]
    left = set(range(len(groups)))

    def take(
        index: int, group: messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
    ) -> None:
        groups[index] = group
        left.discard(index)
        if not left:
            respond(Response(groups=groups))

    if not groups:
        respond(Response())
    for index, asked in enumerate(request.groups):
        _describe(asked, context, partial(take, index))


def _describe(
    asked: messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup,
    context: RequestContext,
    on_group: Callable[[messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup], object],
) -> None:
    group_id = asked.group_id
    describe = AclOperation.DESCRIBE
    refusal = share_group_refusal(context, describe, group_id)
    if refusal:
        on_group(Group(group_id, error_code=refusal))
        return
    if asked.topics is not None and not asked.topics:
        on_group(Group(group_id))
        return
    names = [topic.topic_name for topic in asked.topics or ()]
    denied = unauthorized_names(context, describe, ResourceType.TOPIC, names)

    def take(group: messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup) -> None:
        if asked.topics is None:
            told = [topic.topic_name for topic in group.topics]
            hidden = unauthorized_names(context, describe, ResourceType.TOPIC, told)
            group.topics = [topic for topic in group.topics if topic.topic_name not in hidden]
        group.topics += [
            Topic(topic.topic_name, partitions=[_hidden(number) for number in topic.partitions])
            for topic in asked.topics or ()
            if topic.topic_name in denied
        ]
        on_group(group)

    def fail(error: ApiError) -> None:
        text = ERROR_TEXTS.get(error.error_code)
        on_group(Group(group_id, error_code=error.error_code, error_message=text))

    allowed = asked
    if asked.topics is not None:
        topics = [topic for topic in asked.topics if topic.topic_name not in denied]
        allowed = Request.DescribeShareGroupOffsetsRequestGroup(group_id, topics)
    context.broker.groups.shares.describe_offsets(allowed, take, fail)


def _hidden(number: int) -> messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return Row(number, -1, lag=-1, error_code=code, error_message=ERROR_TEXTS[code])

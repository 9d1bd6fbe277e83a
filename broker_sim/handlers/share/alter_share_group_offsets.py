"""AlterShareGroupOffsets (key 91), version 0; mirrors `KafkaApis.handleAlterShareGroupOffsetsRequest`.

Behaviour:
* share partitions of a group without members begin anew, at the offsets that are named
* a group that there is not is made; a group of another kind is GROUP_ID_NOT_FOUND
* topics that the client may not read, or that do not exist, fail by themselves
* answered once the share coordinator has the new state
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.share.share_version import has_share_groups
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_alter_share_group_offsets"]

Response = messages.AlterShareGroupOffsetsResponse
Topic = Response.AlterShareGroupOffsetsResponseTopic
Row = Response.AlterShareGroupOffsetsResponsePartition


def handle_alter_share_group_offsets(
    request: messages.AlterShareGroupOffsetsRequest,
    context: RequestContext,
    respond: Callable[[messages.AlterShareGroupOffsetsResponse], None],
) -> None:
    """Set the offsets of the topics that exist and may be read."""

    def fail(code: ErrorCode, text: str | None) -> None:
        respond(Response(error_code=code, error_message=text))

    if not has_share_groups(context):
        code = ErrorCode.UNSUPPORTED_VERSION
        fail(code, ERROR_TEXTS.get(code))
        return
    read = AclOperation.READ
    denial = authorization_error(context, read, ResourceType.GROUP, request.group_id)
    if denial:
        fail(denial, ERROR_TEXTS.get(denial))
        return
    names = [topic.topic_name for topic in request.topics]
    denied = unauthorized_names(context, read, ResourceType.TOPIC, names)
    topics = context.broker.image.topics
    refused = []
    allowed = []
    for asked in request.topics:
        name = asked.topic_name
        if name not in denied and name in topics:
            allowed.append(asked)
            continue
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name in denied:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        rows = [Row(each.partition_index, code, ERROR_TEXTS[code]) for each in asked.partitions]
        told = Topic(name, partitions=rows)
        if name in topics:
            told.topic_id = topics[name].topic_id
        refused.append(told)

    def altered(response: messages.AlterShareGroupOffsetsResponse) -> None:
        response.responses = refused + response.responses
        respond(response)

    def failed(error: ApiError) -> None:
        fail(error.error_code, error.error_message or ERROR_TEXTS.get(error.error_code))

    context.broker.groups.shares.alter_offsets(
        messages.AlterShareGroupOffsetsRequest(request.group_id, allowed), altered, failed
    )

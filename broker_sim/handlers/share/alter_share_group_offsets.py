"""AlterShareGroupOffsets (key 91), version 0; mirrors `KafkaApis.handleAlterShareGroupOffsetsRequest`.

Behaviour:
* share partitions of a group without members begin anew, at the offsets that are named
* a group that there is not is made; a group of another kind is GROUP_ID_NOT_FOUND
* topics that the client may not read, or that do not exist, fail by themselves, with each of their partitions
* a negative partition fails all of it
* answered once the share coordinator has the new state
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.share.share_version import has_share_groups
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.metadata import NO_TOPIC_ID
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


def _refused(
    asked: messages.AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic,
    topic_id: bytes,
    *,
    is_denied: bool,
) -> messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if is_denied:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rows = [Row(each.partition_index, code, ERROR_TEXTS[code]) for each in asked.partitions]
    return Topic(asked.topic_name, topic_id, rows)


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
        elif asked.partitions:
            topic_id = topics[name].topic_id if name in topics else NO_TOPIC_ID
            refused.append(_refused(asked, topic_id, is_denied=name in denied))

    def altered(response: messages.AlterShareGroupOffsetsResponse) -> None:
        response.responses = refused + response.responses
        respond(response)

    def failed(error: ApiError) -> None:
        fail(error.error_code, error.error_message or ERROR_TEXTS.get(error.error_code))

    context.broker.groups.shares.alter_offsets(
        messages.AlterShareGroupOffsetsRequest(request.group_id, allowed), altered, failed
    )

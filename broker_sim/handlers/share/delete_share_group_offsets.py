"""DeleteShareGroupOffsets (key 92), version 0; mirrors `KafkaApis.handleDeleteShareGroupOffsetsRequest`.

Behaviour:
* deletes all share state of the topics in a group without members
* topics that the client may not read, that do not exist, or that have no state, fail alone
* answered once the share coordinator and the group have deleted the state
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.share.checks import group_error
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

Response = messages.DeleteShareGroupOffsetsResponse
Topic = Response.DeleteShareGroupOffsetsResponseTopic


def handle_delete_share_group_offsets(
    request: messages.DeleteShareGroupOffsetsRequest,
    context: RequestContext,
    respond: Callable[[messages.DeleteShareGroupOffsetsResponse], None],
) -> None:
    """Delete the offsets of the topics that the client may read."""

    def fail(code: ErrorCode, text: str | None) -> None:
        respond(Response(error_code=code, error_message=text))

    error_code = group_error(context, AclOperation.DELETE, request.group_id)
    if error_code:
        fail(error_code, ERROR_TEXTS.get(error_code))
        return
    names = [topic.topic_name for topic in request.topics]
    denied = unauthorized_names(context, AclOperation.READ, ResourceType.TOPIC, names)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    refused = [Topic(name, error_code=code, error_message=ERROR_TEXTS[code]) for name in names if name in denied]

    def deleted(response: messages.DeleteShareGroupOffsetsResponse) -> None:
        response.responses = refused + response.responses
        respond(response)

    def failed(error: ApiError) -> None:
        fail(error.error_code, error.error_message or ERROR_TEXTS.get(error.error_code))

    topics = [topic for topic in request.topics if topic.topic_name not in denied]
    context.broker.groups.shares.delete_offsets(
        messages.DeleteShareGroupOffsetsRequest(request.group_id, topics), deleted, failed
    )

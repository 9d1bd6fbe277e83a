"""ShareGroupHeartbeat (key 76), version 1; mirrors `KafkaApis.handleShareGroupHeartbeat`.

Behaviour:
* a member chooses its id: it joins with epoch 0, stays with the epoch of the last response, leaves with -1
* the client must be allowed to read the group and to describe the topics in the request
* the coordinator computes the assignments, see `broker_sim.group.share.share_groups`; several members may
  have the same partition
* answered once the changes are committed; the state of new share partitions is initialized after that
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.share.checks import group_error, is_member_id
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.handlers.support.groups import group_client
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext


def handle_share_group_heartbeat(
    request: messages.ShareGroupHeartbeatRequest,
    context: RequestContext,
    respond: Callable[[messages.ShareGroupHeartbeatResponse], None],
) -> None:
    """Serve a member of a share group."""
    error_code = _request_error(request, context)
    if error_code:
        respond(messages.ShareGroupHeartbeatResponse(error_code=error_code))
        return

    def fail(error: ApiError) -> None:
        respond(messages.ShareGroupHeartbeatResponse(error_code=error.error_code, error_message=error.error_message))

    context.broker.groups.shares.heartbeat(request, group_client(context), respond, fail)


def _request_error(request: messages.ShareGroupHeartbeatRequest, context: RequestContext) -> ErrorCode:
    """Return the error for a client that may not be this member, else NONE."""
    error_code = group_error(context, AclOperation.READ, request.group_id)
    if error_code:
        return error_code
    if not is_member_id(request.member_id):
        return ErrorCode.INVALID_REQUEST
    names = request.subscribed_topic_names or ()
    if unauthorized_names(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE

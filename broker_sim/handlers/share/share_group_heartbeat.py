"""ShareGroupHeartbeat (key 76), version 1; mirrors `KafkaApis.handleShareGroupHeartbeat`.

Behaviour:
* a member names itself: it joins with epoch 0, stays with the epoch that it was told, leaves with -1
* the client may read the group and describe the topics that it names
* the coordinator computes who gets what, see `broker_sim.group.share.share_groups`; several members may
  have the same partition
* answered once what it has changed is committed; the state of new share partitions begins after that
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.share.checks import is_member_id
from broker_sim.handlers.share.share_group_refusal import share_group_refusal
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.handlers.support.group_client import group_client
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
    refusal = _refusal(request, context)
    if refusal:
        respond(messages.ShareGroupHeartbeatResponse(error_code=refusal))
        return

    def fail(error: ApiError) -> None:
        respond(messages.ShareGroupHeartbeatResponse(error_code=error.error_code, error_message=error.error_message))

    context.broker.groups.shares.heartbeat(request, group_client(context), respond, fail)


def _refusal(request: messages.ShareGroupHeartbeatRequest, context: RequestContext) -> ErrorCode:
    """Return why the client may not be such a member, NONE if it may."""
    refusal = share_group_refusal(context, AclOperation.READ, request.group_id)
    if refusal:
        return refusal
    if not is_member_id(request.member_id):
        return ErrorCode.INVALID_REQUEST
    names = request.subscribed_topic_names or ()
    if unauthorized_names(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE

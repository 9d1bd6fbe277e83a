"""ConsumerGroupHeartbeat (key 68), versions 0-1; mirrors `KafkaApis.handleConsumerGroupHeartbeatRequest`.

Behaviour:
* a member joins with epoch 0, stays with the epoch of the last response, leaves with -1, and leaves
  temporarily as a static member with -2
* the client must be allowed to read the group and to describe the topics in the request
* the coordinator computes the assignments, see `broker_sim.group.modern.assigned_groups`
* answered once its changes are committed

Version notes: in 0 the coordinator may generate the member id; 1 can subscribe to regular expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.handlers.support.groups import group_client, has_consumer_protocol
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext


def handle_consumer_group_heartbeat(
    request: messages.ConsumerGroupHeartbeatRequest,
    context: RequestContext,
    respond: Callable[[messages.ConsumerGroupHeartbeatResponse], None],
) -> None:
    """Serve a member of a group of the consumer protocol."""
    if not has_consumer_protocol(context):
        respond(refuse(request, context, ErrorCode.UNSUPPORTED_VERSION))
        return
    denial = _denial(request, context)
    if denial:
        respond(refuse(request, context, denial))
        return

    def fail(error: ApiError) -> None:
        respond(messages.ConsumerGroupHeartbeatResponse(error_code=error.error_code, error_message=error.error_message))

    groups = context.broker.groups
    groups.consumer_group_heartbeat(request, group_client(context), respond, fail)


def _denial(request: messages.ConsumerGroupHeartbeatRequest, context: RequestContext) -> ErrorCode:
    """Return the authorization error of a member with these subscriptions, NONE if it is allowed."""
    read, describe = AclOperation.READ, AclOperation.DESCRIBE
    denial = authorization_error(context, read, ResourceType.GROUP, request.group_id)
    names = request.subscribed_topic_names or ()
    if not denial and unauthorized_names(context, describe, ResourceType.TOPIC, names):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return denial

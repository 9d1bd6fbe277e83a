"""Heartbeat (key 12), versions 0-4; mirrors `KafkaApis.handleHeartbeatRequest`.

Behaviour:
* keeps the member's session alive and reports a rebalance (REBALANCE_IN_PROGRESS)
* answered once all earlier writes for the partition's groups are committed
* NONE while the coordinator is loading

Version notes: 3 has static members; 4 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext


def handle_heartbeat(
    request: messages.HeartbeatRequest, context: RequestContext, respond: Callable[[messages.HeartbeatResponse], None]
) -> None:
    """Keep a member's session alive."""

    def answer(error_code: ErrorCode) -> None:
        respond(messages.HeartbeatResponse(error_code=error_code))

    def fail(error: ApiError) -> None:
        is_loading = error.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        answer(ErrorCode.NONE if is_loading else error.error_code)

    denial = authorization_error(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if denial:
        respond(refuse(request, context, denial))
        return
    context.broker.groups.heartbeat(request, answer, fail)

"""JoinGroup (key 11), versions 0-9; mirrors `KafkaApis.handleJoinGroupRequest`.

Behaviour:
* checked first: READ on the group, a group id that is not empty, and a session timeout between
  `group.min.session.timeout.ms` and `group.max.session.timeout.ms`
* a member without an id gets one and has to join again with it (MEMBER_ID_REQUIRED), see
  `broker_sim.group.classic.join`
* the answer is parked until the next generation of the group begins, see
  `broker_sim.group.classic.rebalance`

Version notes: 0 has no rebalance timeout, so the session timeout is used; before 4 a member may join
without an id; 5 has static members (KIP-345); 6 is flexible; 7 returns the protocol type, and the protocol
may be null; 8 has a reason (KIP-800); 9 lets a static leader skip the assignment (KIP-814).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.handlers.support.groups import group_client
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig
    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

REBALANCE_TIMEOUT_VERSION: Final = 1
NO_PROTOCOL_VERSION: Final = 7


def handle_join_group(
    request: messages.JoinGroupRequest, context: RequestContext, respond: Callable[[messages.JoinGroupResponse], None]
) -> None:
    """Join a member to a group."""

    def answer(response: messages.JoinGroupResponse) -> None:
        if context.api_version < NO_PROTOCOL_VERSION:
            response.protocol_name = response.protocol_name or ""
        else:
            response.protocol_name = response.protocol_name or None
        respond(response)

    if context.api_version < REBALANCE_TIMEOUT_VERSION:
        request.rebalance_timeout_ms = request.session_timeout_ms
    denial = authorization_error(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if denial:
        respond(refuse(request, context, denial))
        return
    error_code = _check(request, context.broker.config)
    if error_code:
        answer(messages.JoinGroupResponse(error_code=error_code, member_id=request.member_id))
        return

    def fail(error: ApiError) -> None:
        respond(refuse(request, context, error.error_code))

    context.broker.groups.join_group(request, group_client(context), answer, fail)


def _check(request: messages.JoinGroupRequest, config: BrokerConfig) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    lowest_ms, highest_ms = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not lowest_ms <= request.session_timeout_ms <= highest_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE

"""LeaveGroup (key 13), versions 0-5; mirrors `KafkaApis.handleLeaveGroupRequest`.

Behaviour:
* each member leaves or fails alone; a static member may be identified by its group instance id only
* answered once the record of a group that became empty is committed

Version notes: before 3 a single member leaves, and its error is the error of the response; 3 is batched
(KIP-345); 4 is flexible; 5 has a reason (KIP-800).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

BATCHED_VERSION: Final = 3


def handle_leave_group(
    request: messages.LeaveGroupRequest, context: RequestContext, respond: Callable[[messages.LeaveGroupResponse], None]
) -> None:
    """Remove members from a group."""
    denial = authorization_error(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if denial:
        respond(refuse(request, context, denial))
        return
    is_batched = context.api_version >= BATCHED_VERSION
    members = request.members if is_batched else [request.MemberIdentity(request.member_id)]

    def answer(members_left: list[messages.LeaveGroupResponse.MemberResponse]) -> None:
        if is_batched:
            respond(messages.LeaveGroupResponse(members=members_left))
        else:
            respond(messages.LeaveGroupResponse(error_code=members_left[0].error_code))

    def fail(error: ApiError) -> None:
        respond(refuse(request, context, error.error_code))

    context.broker.groups.leave_group(request.group_id, members, answer, fail)

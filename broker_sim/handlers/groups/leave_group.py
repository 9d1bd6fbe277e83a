"""LeaveGroup (key 13), versions 0-5; mirrors `KafkaApis.handleLeaveGroupRequest`.

Behaviour:
* each member leaves or fails alone; a static member may be named by its group instance id only
* answered once the record of a group that became empty is committed

Version notes: before 3 one member leaves, whose error is the answer's; 3 is batched (KIP-345); 4 is
flexible; 5 tells why (KIP-800).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_leave_group"]

BATCHED_VERSION: Final = 3


def handle_leave_group(
    request: messages.LeaveGroupRequest,
    context: RequestContext,
    respond: Callable[[messages.LeaveGroupResponse], None],
) -> None:
    """Remove members from a group."""
    is_batched = context.api_version >= BATCHED_VERSION
    members = request.members if is_batched else [request.MemberIdentity(request.member_id)]
    try:
        shard = context.broker.groups.shard(request.group_id)
    except ApiError as error:
        respond(messages.LeaveGroupResponse(error_code=error.error_code))
        return

    def answer(left: list[messages.LeaveGroupResponse.MemberResponse], failure: ErrorCode) -> None:
        if failure:
            respond(messages.LeaveGroupResponse(error_code=failure))
        elif is_batched:
            respond(messages.LeaveGroupResponse(members=left))
        else:
            respond(messages.LeaveGroupResponse(error_code=left[0].error_code))

    try:
        shard.classic.leave(request.group_id, members, answer)
    except ApiError as error:
        respond(messages.LeaveGroupResponse(error_code=error.error_code))

"""What is checked of a heartbeat before a group is looked at.

Mirrors `throwIfShareGroupHeartbeatRequestIsInvalid` of `GroupCoordinatorService`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.share.member import LEAVE_GROUP_EPOCH

if TYPE_CHECKING:
    from broker_sim.protocol import messages

__all__ = ["check_heartbeat"]


def check_heartbeat(request: messages.ShareGroupHeartbeatRequest) -> None:
    """Raise `ApiError` INVALID_REQUEST for a request that makes no sense."""
    _check_text(request.member_id, "MemberId can't be empty.")
    _check_text(request.group_id, "GroupId can't be empty.")
    _check_text(request.rack_id, "RackId can't be empty.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise _invalid("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_GROUP_EPOCH:
        raise _invalid("MemberEpoch is invalid.")


def _check_text(text: str | None, message: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(message)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)

"""What is checked of a heartbeat before a group is looked at.

Mirrors `throwIfShareGroupHeartbeatRequestIsInvalid` of `GroupCoordinatorService`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH
from broker_sim.group.request_checks import check_text, invalid_request

if TYPE_CHECKING:
    from broker_sim.protocol import messages


def check_heartbeat(request: messages.ShareGroupHeartbeatRequest) -> None:
    """Raise `ApiError` INVALID_REQUEST for a request that makes no sense."""
    check_text(request.member_id, "MemberId can't be empty.")
    check_text(request.group_id, "GroupId can't be empty.")
    check_text(request.rack_id, "RackId can't be empty.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise invalid_request("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_GROUP_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")

"""Who a member is, and whether it is in the right epoch; mirrors the checks of `GroupMetadataManager`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.request_checks import invalid_request
from broker_sim.group.streams.member import StreamsMember

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from broker_sim.group.streams.streams_group import StreamsGroup
    from broker_sim.group.streams.topics import ConfiguredSubtopology
    from broker_sim.protocol import messages

    Request = messages.StreamsGroupHeartbeatRequest


def check_capacity(group: StreamsGroup, max_size: int) -> None:
    """Raise `ApiError` GROUP_MAX_SIZE_REACHED if the group is full, as in Kafka also for a member of it."""
    if len(group.members) >= max_size:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {max_size} members.",
        )


def find_or_make_member(group: StreamsGroup, request: messages.StreamsGroupHeartbeatRequest) -> StreamsMember:
    """Return the member, a new one if it joins. Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH."""
    if request.member_epoch == 0:
        return group.members.get(request.member_id) or StreamsMember(request.member_id)
    member = group.member(request.member_id)
    _check_epoch(member, request)
    return member


def _check_epoch(member: StreamsMember, request: messages.StreamsGroupHeartbeatRequest) -> None:
    """Raise `ApiError` FENCED_MEMBER_EPOCH unless the epoch is the member's.

    The epoch before is right too if the member says that it owns nothing but what it was given:
    then the answer with its new epoch was lost.
    """
    known, received = member.member_epoch, request.member_epoch
    if received == known:
        return
    if received > known:
        compared = "greater"
    elif received == member.previous_member_epoch and _owns_only_assigned(member, request):
        return
    else:
        compared = "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {compared} member epoch ({received}) than the one known by "
        f"the group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def _owns_only_assigned(member: StreamsMember, request: messages.StreamsGroupHeartbeatRequest) -> bool:
    assigned = member.assigned
    return (
        _is_subset(request.active_tasks, assigned.active)
        and _is_subset(request.standby_tasks, assigned.standby)
        and _is_subset(request.warmup_tasks, assigned.warmup)
    )


def _is_subset(owned: Sequence[Request.TaskIds] | None, assigned: Mapping[str, Collection[int]]) -> bool:
    return owned is not None and all(
        tasks.subtopology_id in assigned
        and all(number in assigned[tasks.subtopology_id] for number in tasks.partitions)
        for tasks in owned
    )


def check_tasks(
    subtopologies: Mapping[str, ConfiguredSubtopology], request: messages.StreamsGroupHeartbeatRequest
) -> None:
    """Raise `ApiError` INVALID_REQUEST if the member says that it owns tasks that there are not."""
    for told in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for tasks in told or ():
            name = tasks.subtopology_id
            if name not in subtopologies:
                raise invalid_request(f"Subtopology {name} does not exist in the topology.")
            count = subtopologies[name].number_of_tasks
            for number in tasks.partitions:
                if not 0 <= number < count:
                    raise invalid_request(
                        f"Task {number} for subtopology {name} is invalid. Number of tasks for this "
                        f"subtopology: {count}"
                    )

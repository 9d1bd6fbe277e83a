"""Static members: identified by an instance id across restarts, under changing member ids.

Mirrors the common part of `GroupMetadataManager` for static members of consumer groups (KIP-848) and, from Kafka 4.4
on, of streams groups. A member that leaves with epoch -2 stays in the group with its target until its session
expires; a member that joins with its instance id in the meantime takes over both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.modern.assigned_group import LEAVE_GROUP_STATIC_EPOCH, Member
from broker_sim.group.modern.records import member_tombstones

if TYPE_CHECKING:
    from broker_sim.group.modern.assigned_group import AssignedGroup
    from broker_sim.group.modern.assigned_groups import AssignedGroups
    from broker_sim.group.records import GroupRecord

M = TypeVar("M", bound=Member)


def joining_member(
    groups: AssignedGroups[Any, M, Any, Any, Any],
    group: AssignedGroup[M, Any],
    member_id: str,
    instance_id: str | None,
    *,
    displaces: bool = False,
) -> tuple[M, list[GroupRecord]]:
    """Return the joining member, and the records by which it replaces a static member.

    A returning static member replaces the member with its instance id that has left. With `displaces` it also replaces
    one that is still in the group; otherwise that raises `ApiError` UNRELEASED_INSTANCE_ID.
    """
    existing = group.static_member(instance_id)
    if existing is None:
        return group.member_or_new(member_id), []
    if existing.member_epoch != LEAVE_GROUP_STATIC_EPOCH and not displaces:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because "
            f"the instance id is owned by {existing.member_id} member.",
        )
    dataclass_member: Any = existing  # the members of all kinds are dataclasses
    member: M = replace(dataclass_member, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    group_id = group.group_id
    return member, [
        *member_tombstones(group.kind, group_id, existing.member_id),
        groups.member_record(group_id, member),
        group.target_record(member_id, group.targets.get(existing.member_id, group.no_target)),
        groups.assignment_record(group_id, member),
    ]


def known_member(group: AssignedGroup[M, Any], member_id: str, instance_id: str | None) -> M:
    """Return the member. Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if instance_id is None:
        return group.member(member_id)
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member

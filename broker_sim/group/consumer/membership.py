"""Which member of a consumer group a request comes from.

Mirrors `getOrMaybeSubscribeDynamicConsumerGroupMember`, its static sibling and the checks that
they call in `GroupMetadataManager`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer import records
from broker_sim.group.modern.assigned_group import LEAVE_GROUP_STATIC_EPOCH
from broker_sim.group.modern.assignment import NO_PARTITIONS
from broker_sim.group.modern.records import member_tombstones

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.records import GroupRecord


def joining_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, *, speaks_classic: bool
) -> tuple[ConsumerMember, list[GroupRecord]]:
    """Return a member that joins, and the records by which it replaces another one.

    A static member that comes back takes the place of the one that left. Raises `ApiError`
    UNRELEASED_INSTANCE_ID.
    """
    existing = group.static_member(instance_id)
    if existing is None:
        return group.member_or_new(member_id), []
    speaks_classic = speaks_classic or existing.uses_classic_protocol
    if not speaks_classic and existing.member_epoch != LEAVE_GROUP_STATIC_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because "
            f"the instance id is owned by {existing.member_id} member.",
        )
    member = replace(existing, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    group_id = group.group_id
    return member, [
        *member_tombstones(group.kind, group_id, existing.member_id),
        records.member_metadata(group_id, member),
        group.target_record(member_id, group.targets.get(existing.member_id, NO_PARTITIONS)),
        records.current_assignment(group_id, member),
    ]


def known_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
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


def owns_only_assigned(member: ConsumerMember, owned: Mapping[bytes, Sequence[int]] | None) -> bool:
    """Return whether the member reports what it owns, and nothing but what it was assigned."""
    assigned = member.assigned
    return owned is not None and all(
        topic_id in assigned and all(number in assigned[topic_id] for number in numbers)
        for topic_id, numbers in owned.items()
    )


def leaving_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return the member that leaves; an administrator names a static one by its instance id only.

    Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is None or member_id:
        return known_member(group, member_id, instance_id)
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member

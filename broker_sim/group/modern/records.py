"""The records that groups of every assigned kind are written with, and how a record changes such a group.

Mirrors `GroupCoordinatorRecordHelpers`, `StreamsCoordinatorRecordHelpers`, and the `replay` functions of
`GroupMetadataManager`. What a kind stores of its own is in its folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from broker_sim.group.records import GroupRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.group.modern.assigned_group import AssignedGroup
    from broker_sim.group.modern.kind import GroupKind

T = TypeVar("T")


def epoch_record(kind: GroupKind, group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of a group's epoch."""
    return GroupRecord(kind.key("Metadata", group_id), kind.value("Metadata", epoch, metadata_hash))


def target_epoch_record(kind: GroupKind, group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch of a target, and of when it was computed (wall clock)."""
    return GroupRecord(
        kind.key("TargetAssignmentMetadata", group_id), kind.value("TargetAssignmentMetadata", epoch, timestamp_ms)
    )


def target_record(group: AssignedGroup[Any, T], member_id: str, target: T) -> GroupRecord:
    """Return the record of a member's target."""
    key = group.kind.key("TargetAssignmentMember", group.group_id, member_id)
    return GroupRecord(key, group.value_of_target(target))


def member_tombstones(kind: GroupKind, group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the records that remove a member, in the order that Kafka requires."""
    types = ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata")
    return [GroupRecord(kind.key(record_type, group_id, member_id), None) for record_type in types]


def group_tombstones(
    kind: GroupKind, group_id: str, member_ids: Iterable[str], own: Iterable[GroupRecord] = ()
) -> list[GroupRecord]:
    """Return the records that remove a group with these members, in the order that Kafka requires.

    `own` are the tombstones of what only this kind stores.
    """
    by_member = [member_tombstones(kind, group_id, member_id) for member_id in member_ids]
    return [
        *(assignment for assignment, _, _ in by_member),
        *(target for _, target, _ in by_member),
        GroupRecord(kind.key("TargetAssignmentMetadata", group_id), None),
        *(metadata for _, _, metadata in by_member),
        *own,
        GroupRecord(kind.key("Metadata", group_id), None),
    ]


def replay_into(
    group: AssignedGroup[Any, Any], record: GroupRecord, replay_own: Callable[[Any, Any, Any], object]
) -> bool:
    """Take in the record of an existing group, and return whether the group is gone then.

    `replay_own(group, key, value)` takes in what only this kind of group stores.
    """
    key: Any = record.key
    value: Any = record.value
    record_type = type(key).__name__.removeprefix(group.kind.prefix)
    if record_type == "MetadataKey":
        if value is None:
            return True
        group.update_epoch(value)
    elif record_type == "TargetAssignmentMetadataKey":
        group.update_target_epoch(value)
    elif not _replay_of_member(group, record_type, key, value):
        replay_own(group, key, value)
    return False


def _replay_of_member(group: AssignedGroup[Any, Any], record_type: str, key: Any, value: Any) -> bool:
    """Take in a record of one member; return False for a record of another type."""
    if record_type == "TargetAssignmentMemberKey":
        if value is None:
            group.remove_target(key.member_id)
        else:
            group.update_target(key.member_id, group.target_of_record(value))
        return True
    if record_type not in {"MemberMetadataKey", "CurrentMemberAssignmentKey"}:
        return False
    is_metadata = record_type == "MemberMetadataKey"
    if value is not None:
        member = group.member_or_new(key.member_id)
        group.update_member(member.with_metadata(value) if is_metadata else member.with_assignment(value))
    elif key.member_id in group.members:
        if is_metadata:
            group.remove_member(key.member_id)
        else:
            group.update_member(group.members[key.member_id].without_assignment())
    return True

"""The records that groups of every assigned kind are written with.

Mirrors `GroupCoordinatorRecordHelpers` and `StreamsCoordinatorRecordHelpers`. What a kind stores of its own is in
its folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.records import GroupRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.group.modern.kind import GroupKind


def epoch_record(kind: GroupKind, group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of a group's epoch."""
    return GroupRecord(kind.key("Metadata", group_id), kind.value("Metadata", epoch, metadata_hash))


def target_epoch_record(kind: GroupKind, group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch of a target, and of when it was computed (wall clock)."""
    return GroupRecord(
        kind.key("TargetAssignmentMetadata", group_id), kind.value("TargetAssignmentMetadata", epoch, timestamp_ms)
    )


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

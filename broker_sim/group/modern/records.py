"""The records common to consumer, share and streams groups.

Mirrors `GroupCoordinatorRecordHelpers` and `StreamsCoordinatorRecordHelpers`. Records specific to a kind are in its
folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.records import GroupRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.group.modern.kind import GroupKind


def epoch_record(kind: GroupKind, group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of a group epoch."""
    return GroupRecord(kind.key("Metadata", group_id), kind.value("Metadata", epoch, metadata_hash))


def target_epoch_record(kind: GroupKind, group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of a target's epoch and of the wall-clock time at which it was computed."""
    return GroupRecord(
        kind.key("TargetAssignmentMetadata", group_id), kind.value("TargetAssignmentMetadata", epoch, timestamp_ms)
    )


def member_tombstones(kind: GroupKind, group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the tombstones of a member, in the order that Kafka requires."""
    types = ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata")
    return [GroupRecord(kind.key(record_type, group_id, member_id), None) for record_type in types]


def group_tombstones(
    kind: GroupKind, group_id: str, member_ids: Iterable[str], own: Iterable[GroupRecord] = ()
) -> list[GroupRecord]:
    """Return the tombstones of a group with these members, in the order that Kafka requires.

    `own` are the tombstones of record types that only this kind has.
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

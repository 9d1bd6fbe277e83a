"""The records that streams groups are written with; mirrors `StreamsCoordinatorRecordHelpers`.

Subtopologies stand in the order of their ids, partitions in the order of their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group import record_messages as messages
from broker_sim.group.java_text import text_order
from broker_sim.group.records import GroupRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.group.streams.assigned_tasks import ActiveTasks
    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.tasks import Tasks, TasksTuple

MemberValue = messages.StreamsGroupMemberMetadataValue
GroupValue = messages.StreamsGroupMetadataValue
TargetValue = messages.StreamsGroupTargetAssignmentMemberValue
CurrentValue = messages.StreamsGroupCurrentMemberAssignmentValue


def member_metadata(group_id: str, member: StreamsMember) -> GroupRecord:
    """Return the record of a member, without its tasks."""
    endpoint = member.user_endpoint
    return GroupRecord(
        messages.StreamsGroupMemberMetadataKey(group_id, member.member_id),
        MemberValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=None if endpoint is None else MemberValue.Endpoint(*endpoint),
            client_tags=[
                MemberValue.KeyValue(key, member.client_tags[key]) for key in sorted(member.client_tags, key=text_order)
            ],
        ),
    )


def group_metadata(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, assignment_configs: Mapping[str, str]
) -> GroupRecord:
    """Return the record of the group's epoch and of what belongs to it."""
    return GroupRecord(
        messages.StreamsGroupMetadataKey(group_id),
        GroupValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=[
                GroupValue.LastAssignmentConfig(name, assignment_configs[name])
                for name in sorted(assignment_configs, key=text_order)
            ],
        ),
    )


def topology_record(group_id: str, topology: messages.StreamsGroupTopologyValue) -> GroupRecord:
    """Return the record of the group's topology."""
    return GroupRecord(messages.StreamsGroupTopologyKey(group_id), topology)


def target_assignment(group_id: str, member_id: str, target: TasksTuple) -> GroupRecord:
    """Return the record of a member's target."""
    return GroupRecord(
        messages.StreamsGroupTargetAssignmentMemberKey(group_id, member_id),
        TargetValue(
            active_tasks=_target_tasks(target.active),
            standby_tasks=_target_tasks(target.standby),
            warmup_tasks=_target_tasks(target.warmup),
        ),
    )


def _target_tasks(tasks: Tasks) -> list[messages.StreamsGroupTargetAssignmentMemberValue.TaskIds]:
    return [
        TargetValue.TaskIds(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks, key=text_order)
    ]


def target_assignment_metadata(group_id: str, epoch: int, computed_ms: int) -> GroupRecord:
    """Return the record of the target's epoch, and of when it was computed (wall clock)."""
    return GroupRecord(
        messages.StreamsGroupTargetAssignmentMetadataKey(group_id),
        messages.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=computed_ms),
    )


def current_assignment(group_id: str, member: StreamsMember) -> GroupRecord:
    """Return the record of what a member has, and of its epoch."""
    assigned, revoked = member.assigned, member.pending_revocation
    return GroupRecord(
        messages.StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        CurrentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            active_tasks=_active_tasks(assigned.active),
            standby_tasks=_tasks(assigned.standby),
            warmup_tasks=_tasks(assigned.warmup),
            active_tasks_pending_revocation=_active_tasks(revoked.active),
            standby_tasks_pending_revocation=_tasks(revoked.standby),
            warmup_tasks_pending_revocation=_tasks(revoked.warmup),
        ),
    )


def _tasks(tasks: Tasks) -> list[messages.StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    return [
        CurrentValue.TaskIds(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks, key=text_order)
    ]


def _active_tasks(tasks: ActiveTasks) -> list[messages.StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    found = []
    for subtopology in sorted(tasks, key=text_order):
        partitions = sorted(tasks[subtopology])
        epochs = [tasks[subtopology][partition] for partition in partitions]
        found.append(CurrentValue.TaskIds(subtopology, partitions, epochs))
    return found


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the records that remove a member."""
    return [
        GroupRecord(messages.StreamsGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        GroupRecord(messages.StreamsGroupTargetAssignmentMemberKey(group_id, member_id), None),
        GroupRecord(messages.StreamsGroupMemberMetadataKey(group_id, member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[GroupRecord]:
    """Return the records that remove a group."""
    of_members = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(assignment for assignment, _, _ in of_members),
        *(target for _, target, _ in of_members),
        GroupRecord(messages.StreamsGroupTargetAssignmentMetadataKey(group_id), None),
        *(metadata for _, _, metadata in of_members),
        GroupRecord(messages.StreamsGroupMetadataKey(group_id), None),
        GroupRecord(messages.StreamsGroupTopologyKey(group_id), None),
    ]

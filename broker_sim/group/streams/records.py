"""The records that only streams groups write; mirrors `StreamsCoordinatorRecordHelpers`.

Subtopologies are sorted by id, partitions by number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.group import record_messages as messages
from broker_sim.group.java_text import text_order
from broker_sim.group.records import GroupRecord
from broker_sim.group.streams.member import FIRST_STATE
from broker_sim.group.streams.tasks import sorted_task_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.tasks import ActiveTasks, TasksTuple

MemberValue = messages.StreamsGroupMemberMetadataValue
GroupValue = messages.StreamsGroupMetadataValue
TargetValue = messages.StreamsGroupTargetAssignmentMemberValue
CurrentValue = messages.StreamsGroupCurrentMemberAssignmentValue


def member_metadata(group_id: str, member: StreamsMember) -> GroupRecord:
    """Return the record of a member's metadata, without its tasks."""
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


class DescriptionEpochs(NamedTuple):
    """Topology epochs of the last description that was stored, and of the last one that could not be stored."""

    stored: int = -1
    failed: int = -1


NO_DESCRIPTION: Final = DescriptionEpochs()
UNCERTAIN_EPOCH: Final = -2
"""Stored epoch of a group while its description is being replaced."""


def group_metadata(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
    descriptions: DescriptionEpochs = NO_DESCRIPTION,
) -> GroupRecord:
    """Return the record of the group epoch and the values that belong to it."""
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
            stored_description_topology_epoch=descriptions.stored,
            failed_description_topology_epoch=descriptions.failed,
        ),
    )


def topology_record(group_id: str, topology: messages.StreamsGroupTopologyValue) -> GroupRecord:
    """Return the record of the group's topology."""
    return GroupRecord(messages.StreamsGroupTopologyKey(group_id), topology)


def target_value(target: TasksTuple) -> messages.StreamsGroupTargetAssignmentMemberValue:
    """Return the record value of a member's target."""
    return TargetValue(
        active_tasks=sorted_task_ids(TargetValue.TaskIds, target.active),
        standby_tasks=sorted_task_ids(TargetValue.TaskIds, target.standby),
        warmup_tasks=sorted_task_ids(TargetValue.TaskIds, target.warmup),
    )


def current_assignment(group_id: str, member: StreamsMember) -> GroupRecord:
    """Return the record of a member's epoch and tasks."""
    assigned, revoked = member.assigned, member.pending_revocation
    return GroupRecord(
        messages.StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        CurrentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state.number(FIRST_STATE),
            active_tasks=_active_tasks(assigned.active),
            standby_tasks=sorted_task_ids(CurrentValue.TaskIds, assigned.standby),
            warmup_tasks=sorted_task_ids(CurrentValue.TaskIds, assigned.warmup),
            active_tasks_pending_revocation=_active_tasks(revoked.active),
            standby_tasks_pending_revocation=sorted_task_ids(CurrentValue.TaskIds, revoked.standby),
            warmup_tasks_pending_revocation=sorted_task_ids(CurrentValue.TaskIds, revoked.warmup),
        ),
    )


def _active_tasks(tasks: ActiveTasks) -> list[messages.StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    task_ids = []
    for subtopology in sorted(tasks, key=text_order):
        partitions = sorted(tasks[subtopology])
        epochs = [tasks[subtopology][partition] for partition in partitions]
        task_ids.append(CurrentValue.TaskIds(subtopology, partitions, epochs))
    return task_ids

"""How a record of a streams group changes what is known.

Mirrors the `replay` functions of `GroupMetadataManager`, which a coordinator calls for what it writes
and for what it loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group import record_messages as messages
from broker_sim.group.streams.member import StreamsMember
from broker_sim.group.streams.tasks import TasksTuple, stored_tasks
from broker_sim.group.streams.topology import StreamsTopology

if TYPE_CHECKING:
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.streams.streams_group import StreamsGroup


def is_of_streams_group(record: GroupRecord) -> bool:
    """Whether the record is one of a streams group."""
    return type(record.key).__name__.startswith("StreamsGroup")


def replay_into(group: StreamsGroup, record: GroupRecord) -> bool:
    """Take in the record of an existing group; returns whether the group is gone then."""
    key, value = record.key, record.value
    if isinstance(key, messages.StreamsGroupMetadataKey):
        if value is None:
            return True
        assert isinstance(value, messages.StreamsGroupMetadataValue)
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        configs = value.last_assignment_configs or ()
        group.last_assignment_configs = {config.key: config.value for config in configs}
    elif isinstance(key, messages.StreamsGroupTopologyKey):
        assert value is None or isinstance(value, messages.StreamsGroupTopologyValue)
        group.topology = None if value is None else StreamsTopology.from_record(value)
    elif isinstance(key, messages.StreamsGroupTargetAssignmentMetadataKey):
        assert value is None or isinstance(value, messages.StreamsGroupTargetAssignmentMetadataValue)
        group.update_target_epoch(value)
    else:
        _replay_of_member(group, record)
    return False


def _replay_of_member(group: StreamsGroup, record: GroupRecord) -> None:
    key, value = record.key, record.value
    if isinstance(key, messages.StreamsGroupTargetAssignmentMemberKey):
        if value is None:
            group.remove_target(key.member_id)
            return
        assert isinstance(value, messages.StreamsGroupTargetAssignmentMemberValue)
        group.update_target(
            key.member_id,
            TasksTuple(
                stored_tasks(value.active_tasks), stored_tasks(value.standby_tasks), stored_tasks(value.warmup_tasks)
            ),
        )
        return
    assert isinstance(key, messages.StreamsGroupMemberMetadataKey | messages.StreamsGroupCurrentMemberAssignmentKey)
    member = group.members.get(key.member_id)
    if isinstance(value, messages.StreamsGroupMemberMetadataValue):
        group.update_member((member or StreamsMember(key.member_id)).with_metadata(value))
    elif isinstance(value, messages.StreamsGroupCurrentMemberAssignmentValue):
        group.update_member((member or StreamsMember(key.member_id)).with_assignment(value))
    elif member is not None and isinstance(key, messages.StreamsGroupMemberMetadataKey):
        group.remove_member(key.member_id)
    elif member is not None:
        group.update_member(member.without_tasks())

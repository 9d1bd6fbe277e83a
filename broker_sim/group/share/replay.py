"""How a record of a share group changes what is known.

Mirrors the `replay` functions of `GroupMetadataManager`, which a coordinator calls for what it writes
and for what it loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group import record_messages as messages
from broker_sim.group.modern.assignment import target_from_record
from broker_sim.group.share.member import ShareMember
from broker_sim.group.share.state_partitions import StatePartitions

if TYPE_CHECKING:
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.share.share_group import ShareGroup


def is_of_share_group(record: GroupRecord) -> bool:
    """Whether the record is one of a share group."""
    return type(record.key).__name__.startswith("ShareGroup")


def replay_into(group: ShareGroup, record: GroupRecord, now_ms: int) -> bool:
    """Take in the record of an existing group, now (wall clock); returns whether the group is gone then."""
    key, value = record.key, record.value
    if isinstance(key, messages.ShareGroupMetadataKey):
        if value is None:
            return True
        assert isinstance(value, messages.ShareGroupMetadataValue)
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
    elif isinstance(key, messages.ShareGroupStatePartitionMetadataKey):
        assert value is None or isinstance(value, messages.ShareGroupStatePartitionMetadataValue)
        group.state_partitions = None if value is None else StatePartitions.of_record(value, now_ms)
    elif isinstance(key, messages.ShareGroupTargetAssignmentMetadataKey):
        assert value is None or isinstance(value, messages.ShareGroupTargetAssignmentMetadataValue)
        group.update_target_epoch(value)
    else:
        _replay_of_member(group, record)
    return False


def _replay_of_member(group: ShareGroup, record: GroupRecord) -> None:
    key, value = record.key, record.value
    if isinstance(key, messages.ShareGroupTargetAssignmentMemberKey):
        if value is None:
            group.remove_target(key.member_id)
            return
        assert isinstance(value, messages.ShareGroupTargetAssignmentMemberValue)
        stored = ((topic.topic_id, topic.partitions) for topic in value.topic_partitions)
        group.update_target(key.member_id, target_from_record(stored))
        return
    assert isinstance(key, messages.ShareGroupMemberMetadataKey | messages.ShareGroupCurrentMemberAssignmentKey)
    member = group.members.get(key.member_id)
    if isinstance(value, messages.ShareGroupMemberMetadataValue):
        group.update_member((member or ShareMember(key.member_id)).with_metadata(value))
    elif isinstance(value, messages.ShareGroupCurrentMemberAssignmentValue):
        group.update_member((member or ShareMember(key.member_id)).with_assignment(value))
    elif member is not None and isinstance(key, messages.ShareGroupMemberMetadataKey):
        group.remove_member(key.member_id)
    elif member is not None:
        group.update_member(member.without_partitions())

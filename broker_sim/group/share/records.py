"""The records that share groups are written with.

Mirrors the `newShareGroup…Record` functions of `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group import record_messages as messages
from broker_sim.group.records import GroupRecord
from broker_sim.group.share.state_partitions import UNKNOWN_NAME
from broker_sim.hash_order.hash_codes import uuid_hash
from broker_sim.hash_order.java_order import hash_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.group.modern.assignment import Partitions
    from broker_sim.group.share.member import ShareMember
    from broker_sim.group.share.state_partitions import StatePartitions, Topics
    from broker_sim.metadata import MetadataImage


def member_metadata(group_id: str, member: ShareMember) -> GroupRecord:
    """Return the record of a member's subscription."""
    return GroupRecord(
        messages.ShareGroupMemberMetadataKey(group_id, member.member_id),
        messages.ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of a group's epoch."""
    return GroupRecord(messages.ShareGroupMetadataKey(group_id), messages.ShareGroupMetadataValue(epoch, metadata_hash))


def target_assignment(group_id: str, member_id: str, target: Partitions) -> GroupRecord:
    """Return the record of a member's target."""
    value = messages.ShareGroupTargetAssignmentMemberValue
    return GroupRecord(
        messages.ShareGroupTargetAssignmentMemberKey(group_id, member_id),
        value([value.TopicPartition(topic, list(numbers)) for topic, numbers in target.items()]),
    )


def target_assignment_metadata(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch of a target, and of when it was computed (wall clock)."""
    return GroupRecord(
        messages.ShareGroupTargetAssignmentMetadataKey(group_id),
        messages.ShareGroupTargetAssignmentMetadataValue(epoch, timestamp_ms),
    )


def current_assignment(group_id: str, member: ShareMember) -> GroupRecord:
    """Return the record of a member's epoch and of what it has."""
    value = messages.ShareGroupCurrentMemberAssignmentValue
    return GroupRecord(
        messages.ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        value(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            assigned_partitions=[
                value.TopicPartitions(topic_id, list(numbers)) for topic_id, numbers in member.assigned_in_order
            ],
        ),
    )


def state_partitions(group_id: str, known: StatePartitions, image: MetadataImage) -> GroupRecord:
    """Return the record of which share partitions have state."""
    value = messages.ShareGroupStatePartitionMetadataValue
    return GroupRecord(
        messages.ShareGroupStatePartitionMetadataKey(group_id),
        value(
            initializing_topics=_topics(known.initializing),
            initialized_topics=_topics(known.initialized),
            deleting_topics=[
                value.TopicInfo(topic_id, image.topic_names.get(topic_id, UNKNOWN_NAME))
                for topic_id in hash_order(known.deleting, uuid_hash)
            ],
        ),
    )


def _topics(topics: Topics) -> list[messages.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
    return [
        messages.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo(
            topic_id, topics[topic_id].name, sorted(topics[topic_id].partitions)
        )
        for topic_id in hash_order(topics, uuid_hash)
    ]


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the records that remove a member."""
    return [
        GroupRecord(messages.ShareGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        GroupRecord(messages.ShareGroupTargetAssignmentMemberKey(group_id, member_id), None),
        GroupRecord(messages.ShareGroupMemberMetadataKey(group_id, member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[GroupRecord]:
    """Return the records that remove a group."""
    of_members = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(assignment for assignment, _, _ in of_members),
        *(target for _, target, _ in of_members),
        GroupRecord(messages.ShareGroupTargetAssignmentMetadataKey(group_id), None),
        *(metadata for _, _, metadata in of_members),
        GroupRecord(messages.ShareGroupStatePartitionMetadataKey(group_id), None),
        GroupRecord(messages.ShareGroupMetadataKey(group_id), None),
    ]

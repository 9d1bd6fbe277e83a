"""The records that only share groups write.

Mirrors `newShareGroup…Record` of `GroupCoordinatorRecordHelpers`; the others are in `modern/records.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group import record_messages as messages
from broker_sim.group.records import GroupRecord
from broker_sim.group.share.state_partitions import UNKNOWN_NAME
from broker_sim.hash_order.hash_codes import uuid_hash
from broker_sim.hash_order.java_order import hash_order

if TYPE_CHECKING:
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


def current_assignment(group_id: str, member: ShareMember) -> GroupRecord:
    """Return the record of a member's epoch and assignment."""
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


def state_partitions(group_id: str, state: StatePartitions, image: MetadataImage) -> GroupRecord:
    """Return the record of the share partitions that have state."""
    value = messages.ShareGroupStatePartitionMetadataValue
    return GroupRecord(
        messages.ShareGroupStatePartitionMetadataKey(group_id),
        value(
            initializing_topics=_topics(state.initializing),
            initialized_topics=_topics(state.initialized),
            deleting_topics=[
                value.TopicInfo(topic_id, image.topic_names.get(topic_id, UNKNOWN_NAME))
                for topic_id in hash_order(state.deleting, uuid_hash)
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

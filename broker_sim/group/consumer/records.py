"""The records that groups of the consumer protocol are written with.

Mirrors the `newConsumerGroup…Record` functions of `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group import record_messages as messages
from broker_sim.group.modern.assignment import epochs_in_order
from broker_sim.group.records import GroupRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.consumer.subscription import ResolvedRegex
    from broker_sim.group.modern.assignment import Epochs, Partitions


def member_metadata(group_id: str, member: ConsumerMember) -> GroupRecord:
    """Return the record of a member's subscription."""
    value = messages.ConsumerGroupMemberMetadataValue
    classic = None
    if member.classic is not None:
        classic = value.ClassicMemberMetadata(
            member.classic.session_timeout_ms,
            [value.ClassicProtocol(*protocol) for protocol in member.classic.protocols],
        )
    return GroupRecord(
        messages.ConsumerGroupMemberMetadataKey(group_id, member.member_id),
        value(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=classic,
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of a group's epoch."""
    return GroupRecord(
        messages.ConsumerGroupMetadataKey(group_id), messages.ConsumerGroupMetadataValue(epoch, metadata_hash)
    )


def subscription_metadata_tombstone(group_id: str) -> GroupRecord:
    """Return the record that removes what Kafka before 4.1 stored of a group's topics."""
    return GroupRecord(messages.ConsumerGroupPartitionMetadataKey(group_id), None)


def target_assignment(group_id: str, member_id: str, target: Partitions) -> GroupRecord:
    """Return the record of a member's target."""
    value = messages.ConsumerGroupTargetAssignmentMemberValue
    return GroupRecord(
        messages.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id),
        value([value.TopicPartition(topic, list(numbers)) for topic, numbers in target.items()]),
    )


def target_assignment_metadata(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch of a target, and of when it was computed (wall clock)."""
    return GroupRecord(
        messages.ConsumerGroupTargetAssignmentMetadataKey(group_id),
        messages.ConsumerGroupTargetAssignmentMetadataValue(epoch, timestamp_ms),
    )


def current_assignment(group_id: str, member: ConsumerMember) -> GroupRecord:
    """Return the record of a member's epoch and of what it owns."""
    return GroupRecord(
        messages.ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        messages.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state.value,
            assigned_partitions=_topic_partitions(member.assigned),
            partitions_pending_revocation=_topic_partitions(member.pending_revocation),
        ),
    )


def regex(group_id: str, expression: str, resolved: ResolvedRegex) -> GroupRecord:
    """Return the record of the topics that an expression matches."""
    return GroupRecord(
        messages.ConsumerGroupRegularExpressionKey(group_id, expression),
        messages.ConsumerGroupRegularExpressionValue(sorted(resolved.topics), resolved.version, resolved.timestamp_ms),
    )


def regex_tombstone(group_id: str, expression: str) -> GroupRecord:
    """Return the record that removes an expression."""
    return GroupRecord(messages.ConsumerGroupRegularExpressionKey(group_id, expression), None)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the records that remove a member, in the order that Kafka asks for."""
    return [
        GroupRecord(messages.ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        GroupRecord(messages.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        GroupRecord(messages.ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], expressions: Iterable[str]) -> list[GroupRecord]:
    """Return the records that remove a group with these members, in the order that Kafka asks for."""
    by_member = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(assignment for assignment, _, _ in by_member),
        *(target for _, target, _ in by_member),
        GroupRecord(messages.ConsumerGroupTargetAssignmentMetadataKey(group_id), None),
        *(metadata for _, _, metadata in by_member),
        *(regex_tombstone(group_id, expression) for expression in expressions),
        subscription_metadata_tombstone(group_id),
        GroupRecord(messages.ConsumerGroupMetadataKey(group_id), None),
    ]


def _topic_partitions(epochs: Epochs) -> list[messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    topic = messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    return [
        topic(topic_id, numbers, [epochs[topic_id][number] for number in numbers])
        for topic_id, numbers in epochs_in_order(epochs)
    ]

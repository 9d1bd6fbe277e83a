"""The records that only consumer groups write.

Mirrors `newConsumerGroup…Record` of `GroupCoordinatorRecordHelpers`; the others are in `modern/records.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.group import record_messages as messages
from broker_sim.group.consumer.member import FIRST_STATE
from broker_sim.group.modern.assignment import epochs_in_order
from broker_sim.group.records import GroupRecord

if TYPE_CHECKING:
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.modern.assignment import Epochs


class ResolvedRegex(NamedTuple):
    """The topics that match a regular expression, with the metadata version and wall-clock time of the match."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


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


def subscription_metadata_tombstone(group_id: str) -> GroupRecord:
    """Return the tombstone of a group's subscription metadata, written before Kafka 4.1."""
    return GroupRecord(messages.ConsumerGroupPartitionMetadataKey(group_id), None)


def current_assignment(group_id: str, member: ConsumerMember) -> GroupRecord:
    """Return the record of a member's epoch and assignment."""
    return GroupRecord(
        messages.ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        messages.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state.number(FIRST_STATE),
            assigned_partitions=_topic_partitions(member.assigned),
            partitions_pending_revocation=_topic_partitions(member.pending_revocation),
        ),
    )


def regex(group_id: str, expression: str, resolved: ResolvedRegex) -> GroupRecord:
    """Return the record of the topics that a regular expression matches."""
    return GroupRecord(
        messages.ConsumerGroupRegularExpressionKey(group_id, expression),
        messages.ConsumerGroupRegularExpressionValue(sorted(resolved.topics), resolved.version, resolved.timestamp_ms),
    )


def regex_tombstone(group_id: str, expression: str) -> GroupRecord:
    """Return the tombstone of a regular expression."""
    return GroupRecord(messages.ConsumerGroupRegularExpressionKey(group_id, expression), None)


def _topic_partitions(epochs: Epochs) -> list[messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    topic = messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    return [
        topic(topic_id, numbers, [epochs[topic_id][number] for number in numbers])
        for topic_id, numbers in epochs_in_order(epochs)
    ]

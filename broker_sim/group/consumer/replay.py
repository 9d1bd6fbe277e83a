"""How a record of a group of the consumer protocol changes what is known.

Mirrors the `replay` functions of `GroupMetadataManager`, which a coordinator calls for what it writes
and for what it loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group import record_messages as messages
from broker_sim.group.consumer.member import ConsumerMember
from broker_sim.group.consumer.subscription import ResolvedRegex
from broker_sim.group.modern.assignment import target_from_record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.records import GroupRecord
    from broker_sim.protocol.message import Message


def replay_into(group: ConsumerGroup, record: GroupRecord) -> bool:
    """Take in the record of an existing group; returns whether the group is gone then."""
    is_gone = isinstance(record.key, messages.ConsumerGroupMetadataKey) and record.value is None
    if not is_gone:
        _REPLAYS[type(record.key).__name__](group, record.key, record.value)
    return is_gone


def _replay_epoch(group: ConsumerGroup, key: Message, value: Message | None) -> None:
    del key
    assert isinstance(value, messages.ConsumerGroupMetadataValue)
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _replay_member(group: ConsumerGroup, key: Message, value: Message | None) -> None:
    assert isinstance(key, messages.ConsumerGroupMemberMetadataKey)
    if value is None:
        group.remove_member(key.member_id)
        return
    assert isinstance(value, messages.ConsumerGroupMemberMetadataValue)
    member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
    group.update_member(member.with_metadata(value))


def _replay_current_assignment(group: ConsumerGroup, key: Message, value: Message | None) -> None:
    assert isinstance(key, messages.ConsumerGroupCurrentMemberAssignmentKey)
    member = group.members.get(key.member_id)
    if value is not None:
        assert isinstance(value, messages.ConsumerGroupCurrentMemberAssignmentValue)
        group.update_member((member or ConsumerMember(key.member_id)).with_assignment(value))
    elif member is not None:
        group.update_member(member.without_partitions())


def _replay_target(group: ConsumerGroup, key: Message, value: Message | None) -> None:
    assert isinstance(key, messages.ConsumerGroupTargetAssignmentMemberKey)
    if value is None:
        group.remove_target(key.member_id)
        return
    assert isinstance(value, messages.ConsumerGroupTargetAssignmentMemberValue)
    stored = ((topic.topic_id, topic.partitions) for topic in value.topic_partitions)
    group.update_target(key.member_id, target_from_record(stored))


def _replay_target_epoch(group: ConsumerGroup, key: Message, value: Message | None) -> None:
    del key
    assert value is None or isinstance(value, messages.ConsumerGroupTargetAssignmentMetadataValue)
    group.update_target_epoch(value)


def _replay_regex(group: ConsumerGroup, key: Message, value: Message | None) -> None:
    assert isinstance(key, messages.ConsumerGroupRegularExpressionKey)
    resolved = None
    if value is not None:
        assert isinstance(value, messages.ConsumerGroupRegularExpressionValue)
        resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    group.update_regex(key.regular_expression, resolved)


def _replay_subscription_metadata(group: ConsumerGroup, key: Message, value: Message | None) -> None:
    del key
    group.has_subscription_metadata_record = value is not None


_REPLAYS: Final[Mapping[str, Callable[[ConsumerGroup, Message, Message | None], None]]] = {
    "ConsumerGroupMetadataKey": _replay_epoch,
    "ConsumerGroupMemberMetadataKey": _replay_member,
    "ConsumerGroupCurrentMemberAssignmentKey": _replay_current_assignment,
    "ConsumerGroupTargetAssignmentMemberKey": _replay_target,
    "ConsumerGroupTargetAssignmentMetadataKey": _replay_target_epoch,
    "ConsumerGroupRegularExpressionKey": _replay_regex,
    "ConsumerGroupPartitionMetadataKey": _replay_subscription_metadata,
}

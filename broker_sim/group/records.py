"""The records of `__consumer_offsets`, byte for byte as Kafka writes them.

Mirrors `GroupCoordinatorRecordSerde` and `GroupCoordinatorRecordHelpers` (which version a value is
written in).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.records import CoordinatorRecord as GroupRecord
from broker_sim.coordinator.records import RecordSerde
from broker_sim.group import record_messages
from broker_sim.protocol.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from broker_sim.protocol.message import Message

__all__ = ["GroupRecord", "decode_record", "group_id_of", "serde"]

_NAMES: Final = {
    0: "LegacyOffsetCommit",
    1: "OffsetCommit",
    2: "GroupMetadata",
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}
"""The types of records by the number in front of their keys; mirrors `CoordinatorRecordType`."""


def _written_version(value: Message) -> int:
    """Return the version that Kafka writes; mirrors `GroupCoordinatorRecordHelpers`."""
    if isinstance(value, record_messages.OffsetCommitValue):
        return 4 if value.expire_timestamp == NO_TIMESTAMP else 1
    if isinstance(value, record_messages.GroupMetadataValue):
        return 3
    return value.MIN_VERSION


serde: Final = RecordSerde(record_messages, _NAMES, _written_version)
decode_record = serde.decode_record


def group_id_of(record: GroupRecord) -> str:
    """Return the group that a record belongs to; not for offsets, nor for groups of the classic protocol."""
    group_id: str = getattr(record.key, "group_id")  # noqa: B009 - a field of every key of these kinds
    return group_id

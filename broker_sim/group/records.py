"""The records of `__consumer_offsets`, byte for byte as Kafka writes them.

Mirrors `GroupCoordinatorRecordSerde` and, for the versions of values, `GroupCoordinatorRecordHelpers`.
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
"""Record types by the number that prefixes their keys; mirrors `CoordinatorRecordType`."""


def _written_version(value: Message) -> int:
    """Return the version that Kafka writes a value in; mirrors `GroupCoordinatorRecordHelpers`."""
    if isinstance(value, record_messages.OffsetCommitValue):
        return 4 if value.expire_timestamp == NO_TIMESTAMP else 1
    if isinstance(value, record_messages.GroupMetadataValue):
        return 3
    return value.MIN_VERSION


serde: Final = RecordSerde(record_messages, _NAMES, _written_version)
decode_record = serde.decode_record


def group_id_of(record: GroupRecord) -> str:
    """Return the group id of a record of a consumer, share or streams group."""
    group_id: str = getattr(record.key, "group_id")  # noqa: B009 - all their keys have this field
    return group_id

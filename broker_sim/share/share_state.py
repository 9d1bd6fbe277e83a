"""The state of share partitions that persister and share coordinator exchange; mirrors the values of `Persister`.

A share partition is a topic partition as read by one share group. The group coordinator initializes and deletes its
state, and reads its summary. The partition leader reads and writes it. The share coordinator stores it, on this broker
or another one.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.protocol.uuids import uuid_text

if TYPE_CHECKING:
    from broker_sim.metadata.topic_partition import TopicIdPartition

UNINITIALIZED_START_OFFSET: Final = -1
"""Start offset of a share partition before it is set; mirrors `PartitionFactory`."""
UNINITIALIZED_EPOCH: Final = 0
"""State epoch and leader epoch of an uninitialized share partition."""
UNINITIALIZED_DELIVERY_COMPLETE_COUNT: Final = -1
TOPIC_ID_BYTES: Final = 16

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


class SharePartitionKey(NamedTuple):
    """Key of a share partition; mirrors `SharePartitionKey`."""

    group_id: str
    topic_id: bytes
    partition: int

    @classmethod
    def of(cls, group_id: str, partition: TopicIdPartition) -> SharePartitionKey:
        """Return the key of a partition in a group."""
        return cls(group_id, partition.topic_id, partition.partition)

    def coordinator_key(self) -> str:
        """Return the share partition's key for FindCoordinator."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"

    @classmethod
    def of_coordinator_key(cls, text: str) -> SharePartitionKey:
        """Parse a coordinator key. Raises ValueError if it is malformed.

        The group id may contain colons, so the key is parsed from its end.
        """
        tokens = text.rstrip(":").split(":")
        if len(tokens) < len(cls._fields):
            raise ValueError(f"expected groupId:topicId:partition, found {text!r}")
        *group, topic, number = tokens
        group_id = ":".join(group)
        if not group_id.strip():
            raise ValueError("the group id must not be empty")
        topic_id = base64.b64decode(topic.rstrip("=") + "==", altchars=b"-_", validate=True)
        if len(topic_id) != TOPIC_ID_BYTES:
            raise ValueError(f"invalid topic id: {topic!r}")
        if not _NUMBER.fullmatch(number) or not -(1 << 31) <= int(number) < 1 << 31:
            raise ValueError(f"invalid partition: {number!r}")
        return cls(group_id, topic_id, int(number))


class StateBatch(NamedTuple):
    """Adjacent records with the same delivery state and count; mirrors `PersisterStateBatch`."""

    first_offset: int
    last_offset: int
    delivery_state: int
    """Number of the `RecordState`: 0 available, 2 acknowledged, 3 archiving, 4 archived."""
    delivery_count: int


class WrittenState(NamedTuple):
    """Changes written by the leader of a share partition; mirrors `PartitionStateBatchData`."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    """The new start offset; -1 keeps the old one."""
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


class StateOutcome(NamedTuple):
    """The outcome of a call that returns only an error code; mirrors `PartitionErrorData`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ReadState(NamedTuple):
    """The state of a share partition, or the error of the read; mirrors `PartitionAllData`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = UNINITIALIZED_EPOCH
    start_offset: int = UNINITIALIZED_START_OFFSET
    state_batches: tuple[StateBatch, ...] = ()


class StateSummary(NamedTuple):
    """The offsets and counts of a share partition, or the error of the read; mirrors `PartitionStateSummaryData`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = UNINITIALIZED_EPOCH
    leader_epoch: int = UNINITIALIZED_EPOCH
    start_offset: int = UNINITIALIZED_START_OFFSET
    delivery_complete_count: int = UNINITIALIZED_DELIVERY_COMPLETE_COUNT

"""The state of share partitions, as persister and share coordinator pass it on; mirrors the values of `Persister`.

A share partition is a partition of a topic as one share group reads it. The group coordinator begins and deletes its
state, and reads the summary of it. The leader of the partition reads and writes it. The share coordinator keeps it, on
this broker or another one.
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
"""Start offset of a share partition that has none; mirrors `PartitionFactory`."""
UNINITIALIZED_EPOCH: Final = 0
"""State epoch and leader epoch of a share partition that has none."""
UNINITIALIZED_DELIVERY_COMPLETE_COUNT: Final = -1
TOPIC_ID_BYTES: Final = 16

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


class SharePartitionKey(NamedTuple):
    """The name of a share partition; mirrors `SharePartitionKey`."""

    group_id: str
    topic_id: bytes
    partition: int

    @classmethod
    def of(cls, group_id: str, partition: TopicIdPartition) -> SharePartitionKey:
        """Return the key of a partition as the group reads it."""
        return cls(group_id, partition.topic_id, partition.partition)

    def coordinator_key(self) -> str:
        """Return the key with which FindCoordinator finds the share coordinator."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"

    @classmethod
    def of_coordinator_key(cls, text: str) -> SharePartitionKey:
        """Return the share partition of a coordinator key. Raises ValueError for another text.

        A group id may have colons in it, so the key is read from its end.
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
            raise ValueError(f"no topic id: {topic!r}")
        if not _NUMBER.fullmatch(number) or not -(1 << 31) <= int(number) < 1 << 31:
            raise ValueError(f"no partition: {number!r}")
        return cls(group_id, topic_id, int(number))


class StateBatch(NamedTuple):
    """Adjacent records with the same delivery state and count; mirrors `PersisterStateBatch`."""

    first_offset: int
    last_offset: int
    delivery_state: int
    """0: available, 2: acknowledged, 3: its dead letter is being written, 4: archived."""
    delivery_count: int


class WrittenState(NamedTuple):
    """A write by the leader of a share partition; mirrors `PartitionStateBatchData`."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    """The new start offset; -1 keeps the old one."""
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


class StateOutcome(NamedTuple):
    """The result of a call that returns only an error, or none; mirrors `PartitionErrorData`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ReadState(NamedTuple):
    """The state of a share partition, or why it was not read; mirrors `PartitionAllData`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = UNINITIALIZED_EPOCH
    start_offset: int = UNINITIALIZED_START_OFFSET
    state_batches: tuple[StateBatch, ...] = ()


class StateSummary(NamedTuple):
    """The offsets and counts of a share partition, or why they were not read; mirrors `PartitionStateSummaryData`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = UNINITIALIZED_EPOCH
    leader_epoch: int = UNINITIALIZED_EPOCH
    start_offset: int = UNINITIALIZED_START_OFFSET
    delivery_complete_count: int = UNINITIALIZED_DELIVERY_COMPLETE_COUNT

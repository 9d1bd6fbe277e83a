"""How the state of share partitions is kept and found again; mirrors `Persister` and its values.

A share partition is a partition of a topic as one share group reads it. The group coordinator begins and
deletes its state, and reads the summary of it. The leader of the partition reads and writes it. The share
coordinator keeps it, on this broker or another one.

Deliberate difference: one call is about one share partition, where Kafka's have a list and one future for
all of them. What goes to the same coordinator at the same time still goes there in one request.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.metadata.topic_partition import TopicIdPartition

UNINITIALIZED_START_OFFSET: Final = -1
"""Stands for the start offset of a share partition where none is known; see `PartitionFactory`."""
UNINITIALIZED_EPOCH: Final = 0
"""Stands for the state epoch or the leader epoch where none is known."""
UNINITIALIZED_DELIVERY_COMPLETE_COUNT: Final = -1
TOPIC_ID_BYTES: Final = 16

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


class SharePartitionKey(NamedTuple):
    """Names a share partition; mirrors `SharePartitionKey`."""

    group_id: str
    topic_id: bytes
    partition: int

    @classmethod
    def of(cls, group_id: str, partition: TopicIdPartition) -> SharePartitionKey:
        """Return the key of a partition as the group reads it."""
        return cls(group_id, partition.topic_id, partition.partition)

    def coordinator_key(self) -> str:
        """Return the key that FindCoordinator finds the share coordinator by."""
        topic_id = base64.urlsafe_b64encode(self.topic_id).decode().rstrip("=")
        return f"{self.group_id}:{topic_id}:{self.partition}"

    @classmethod
    def of_coordinator_key(cls, text: str) -> SharePartitionKey:
        """Return what such a key names. Raises ValueError for another text.

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
    """Records next to each other whose delivery stands alike; mirrors `PersisterStateBatch`."""

    first_offset: int
    last_offset: int
    delivery_state: int
    """0: available, 2: acknowledged, 4: archived."""
    delivery_count: int


class WrittenState(NamedTuple):
    """What the leader of a share partition writes; mirrors `PartitionStateBatchData`."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    """-1 leaves it as it is."""
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


class StateOutcome(NamedTuple):
    """What became of a call that returns nothing else; mirrors `PartitionErrorData`."""

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
    """Where a share partition stands, or why it was not read; mirrors `PartitionStateSummaryData`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = UNINITIALIZED_EPOCH
    leader_epoch: int = UNINITIALIZED_EPOCH
    start_offset: int = UNINITIALIZED_START_OFFSET
    delivery_complete_count: int = UNINITIALIZED_DELIVERY_COMPLETE_COUNT


class Persister(Protocol):
    """Reaches the share coordinators of the cluster. Thread rule: the broker's loop.

    Each callback is called once: later, or before the method returns. Errors that pass by themselves (the
    coordinator moves, loads or does not answer) are tried again inside; what is told is the last one.
    """

    def initialize_state(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, on_done: Callable[[StateOutcome], object]
    ) -> None:
        """Begin the state in that epoch (InitializeShareGroupState); -1 as the offset leaves it open."""

    def read_state(self, key: SharePartitionKey, leader_epoch: int, on_done: Callable[[ReadState], object]) -> None:
        """Read the whole state, as a leader of that epoch (ReadShareGroupState)."""

    def write_state(
        self, key: SharePartitionKey, state: WrittenState, on_done: Callable[[StateOutcome], object]
    ) -> None:
        """Write what has changed (WriteShareGroupState)."""

    def delete_state(self, key: SharePartitionKey, on_done: Callable[[StateOutcome], object]) -> None:
        """Delete all state of the share partition (DeleteShareGroupState)."""

    def read_summary(
        self, key: SharePartitionKey, leader_epoch: int, on_done: Callable[[StateSummary], object]
    ) -> None:
        """Read where the share partition stands (ReadShareGroupStateSummary)."""

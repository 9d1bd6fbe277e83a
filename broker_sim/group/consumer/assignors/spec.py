"""What an assignor is told of a group; mirrors `GroupSpecImpl` and `SubscribedTopicDescriberImpl`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_sim.group.modern.assignment import AssignorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.group.modern.assignment import Partitions


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: the existing topics that it subscribes to, in Kafka's order, and its last target.

    `subscribed_size` counts the names of its subscription, of which some topics may not exist.
    """

    instance_id: str | None
    topic_ids: Sequence[bytes]
    subscribed_size: int
    target: Partitions


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group: its members in the order of Kafka's table, partitions by topic id, who had which."""

    members: Mapping[str, MemberSpec]
    homogeneous: bool
    """Whether all members subscribe to the same topics."""
    partition_counts: Mapping[bytes, int]
    assigned: Mapping[bytes, Mapping[int, str]]
    """The member that each partition was assigned to, by topic id and partition."""

    def partition_count(self, topic_id: bytes) -> int:
        """Return how many partitions the topic has; `AssignorError` when it does not exist."""
        count = self.partition_counts.get(topic_id)
        if count is None:
            raise AssignorError(f"Members are subscribed to topic {topic_id.hex()} which doesn't exist")
        return count

    def is_assigned(self, topic_id: bytes, partition: int) -> bool:
        """Return whether the last target gave the partition to a member."""
        owners = self.assigned.get(topic_id)
        return owners is not None and partition in owners

"""The input of assignors; mirrors `GroupSpecImpl` and `SubscribedTopicDescriberImpl`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.group.modern.assignment import AssignorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.group.modern.assignment import Partitions


class MemberSpec(NamedTuple):
    """One member: the existing topics that it subscribes to, in Kafka's order, and its previous target.

    `subscribed_size` is the number of names in its subscription, including topics that do not exist.
    """

    instance_id: str | None
    topic_ids: Sequence[bytes]
    subscribed_size: int
    target: Partitions


class GroupSpec(NamedTuple):
    """A group: its members in the order of Kafka's table, its topics, and the previous target."""

    members: Mapping[str, MemberSpec]
    homogeneous: bool
    """Whether all members subscribe to the same topics."""
    partition_counts: Mapping[bytes, int]
    assigned: Mapping[bytes, Mapping[int, str]]
    """The member to which each partition was assigned, by topic id and partition."""

    def partition_count(self, topic_id: bytes) -> int:
        """Return the topic's number of partitions. Raises `AssignorError` if it does not exist."""
        count = self.partition_counts.get(topic_id)
        if count is None:
            raise AssignorError(f"Members are subscribed to topic {topic_id.hex()} which doesn't exist")
        return count

    def is_assigned(self, topic_id: bytes, partition: int) -> bool:
        """Return whether the previous target assigns the partition to a member."""
        owners = self.assigned.get(topic_id)
        return owners is not None and partition in owners

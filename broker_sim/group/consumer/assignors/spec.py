"""The input of assignors; mirrors `GroupSpecImpl` and `SubscribedTopicDescriberImpl`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.group.modern.assignment import AssignorError
from broker_sim.hash_order.hash_codes import integer_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable, copied_capacity, table_capacity

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


class Draft:
    """The target of one member during an assignment, copied on the first change.

    The copy has the table layout of Kafka's `AssignorHelpers`.
    """

    __slots__ = ("_changed", "_old")

    def __init__(self, old: Partitions) -> None:
        self._old = old
        self._changed: HashTable[bytes, HashTable[int, None]] | None = None

    def add(self, topic_id: bytes, partition: int, capacity: int = 16) -> None:
        """Add a partition; `capacity` is the initial number of buckets of a new topic's set."""
        topics = self._writable()
        partitions = topics.get(topic_id)
        if partitions is None:
            partitions = HashTable(integer_hash, capacity)
            topics.add(topic_id, partitions)
        partitions.put(partition, None)

    def remove(self, topic_id: bytes, partition: int) -> None:
        """Remove a partition, which must be in the target."""
        topics = self._writable()
        del topics[topic_id][partition]
        if not topics[topic_id]:
            del topics[topic_id]

    def remove_topic(self, topic_id: bytes) -> None:
        """Remove all partitions of a topic, which must be in the target."""
        del self._writable()[topic_id]

    def open(self) -> None:
        """Copy the old target even without a change, as Kafka does."""
        self._writable()

    def finish(self) -> Partitions:
        """Return the target; the old object if nothing has changed."""
        topics = self._changed
        if topics is None:
            return self._old
        return {topic: topics[topic].in_order() for topic in topics.in_order()}

    def _writable(self) -> HashTable[bytes, HashTable[int, None]]:
        topics = self._changed
        if topics is None:
            topics = self._changed = HashTable(uuid_hash, table_capacity(len(self._old)))
            for topic_id, numbers in self._old.items():
                partitions: HashTable[int, None]
                partitions = HashTable(integer_hash, copied_capacity(len(numbers)))
                for number in numbers:
                    partitions.put(number, None)
                topics.put(topic_id, partitions)
        return topics

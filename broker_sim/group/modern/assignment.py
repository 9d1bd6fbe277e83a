"""Targets and owned partitions of members, and the subscribed topics of a group.

Mirrors `org.apache.kafka.coordinator.group.modern.Assignment`, the maps of partitions with epochs of
`ConsumerGroupMember`, `SubscriptionCount`, `TopicIds`, `Utils.incValue` and `ConsumerGroup.subscriptionType`.
The topics and partitions of a target are in the iteration order of Kafka's tables, because assignors iterate over
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker_sim.hash_order.hash_codes import integer_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable, TimelineMap, copied_capacity, hash_order, table_capacity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.metadata import MetadataImage


Partitions: TypeAlias = Mapping[bytes, Sequence[int]]
"""Partitions by topic id; no topic has an empty list."""

Epochs: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""Member epochs in which partitions were assigned, by topic id and partition."""


class AssignorError(Exception):
    """The target cannot be computed; mirrors `PartitionAssignorException` and `TaskAssignorException`."""


NO_PARTITIONS: Final[Partitions] = {}
NO_EPOCHS: Final[Epochs] = {}


def same_partitions(left: Partitions, right: Partitions) -> bool:
    """Return whether both have the same partitions, in any order."""
    return left.keys() == right.keys() and all(
        left[topic] is right[topic] or set(left[topic]) == set(right[topic]) for topic in left
    )


def target_from_record(stored: Iterable[tuple[bytes, Sequence[int]]]) -> Partitions:
    """Return the target in a record, in the order of the tables that Kafka builds from it."""
    target = dict(stored)
    return {
        topic: tuple(hash_order(target[topic], integer_hash, copied_capacity(len(target[topic]))))
        for topic in hash_order(target, uuid_hash)
    }


def epochs_in_order(epochs: Epochs) -> list[tuple[bytes, list[int]]]:
    """Return topics and partitions in the iteration order of Kafka's nested `HashMap`s."""
    return [(topic, hash_order(epochs[topic], integer_hash)) for topic in hash_order(epochs, uuid_hash)]


class SubscriptionCount(NamedTuple):
    """Number of members that name a topic, and number of regular expressions that match it."""

    by_name: int
    by_regex: int


class TopicCounts(dict[str, SubscriptionCount]):
    """The subscribed topics of a group, with their counts."""

    def add_names(self, names: Iterable[str], by: int) -> None:
        """Add `by` (1 or -1) to the number of members that name these topics."""
        self._add(names, by, 0)

    def add_regex(self, topics: Iterable[str], by: int) -> None:
        """Add `by` (1 or -1) to the number of regular expressions that match these topics."""
        self._add(topics, 0, by)

    def _add(self, topics: Iterable[str], names: int, regexes: int) -> None:
        for topic in topics:
            old = self.get(topic, SubscriptionCount(0, 0))
            new = SubscriptionCount(old.by_name + names, old.by_regex + regexes)
            if new.by_name > 0 or new.by_regex > 0:
                self[topic] = new
            else:
                self.pop(topic, None)

    def copied(self) -> TopicCounts:
        """Return a copy."""
        return TopicCounts(self)


def topic_ids_of(names: Iterable[str], image: MetadataImage) -> list[bytes]:
    """Return the ids of the topics that exist."""
    topics = image.topics
    return [topics[name].topic_id for name in names if name in topics]


def is_homogeneous(regexes: Mapping[str, int], topics: Mapping[str, SubscriptionCount], members: int) -> bool:
    """Return whether all `members` (a number) subscribe to the same topics."""
    if not regexes:
        return all(count.by_name == members for count in topics.values())
    if next(iter(regexes.values())) != members:
        return False
    return all(count.by_regex == 1 and count.by_name == 0 for count in topics.values())


def add_count(counts: dict[str, int], name: str | None, by: int) -> None:
    """Add `by` to a count, and remove it at 0; does nothing if the name is None or empty."""
    if name:
        number = counts.get(name, 0) + by
        if number > 0 and isinstance(counts, TimelineMap):
            counts.put(name, number)
        elif number > 0 and isinstance(counts, HashTable) and name not in counts:
            counts.add(name, number)
        elif number > 0:
            counts[name] = number
        else:
            counts.pop(name, None)


def most_frequent(names: Iterable[str], counts: Mapping[str, int]) -> str | None:
    """Return the first name with the highest count; None without names."""
    return max(names, key=lambda name: counts[name], default=None)


class Draft:
    """The target of one member during an assignment; the previous target is copied on the first change.

    The copy has the table layout of Kafka's `AssignorHelpers`.
    """

    __slots__ = ("_changed", "previous")

    def __init__(self, previous: Partitions) -> None:
        self.previous = previous
        self._changed: HashTable[bytes, HashTable[int, None]] | None = None

    @property
    def changed(self) -> HashTable[bytes, HashTable[int, None]]:
        """A writable copy of the previous target: partitions by topic id."""
        topics = self._changed
        if topics is None:
            topics = self._changed = HashTable(uuid_hash, table_capacity(len(self.previous)))
            for topic_id, numbers in self.previous.items():
                partitions: HashTable[int, None] = HashTable(integer_hash, copied_capacity(len(numbers)))
                for number in numbers:
                    partitions.put(number, None)
                topics.put(topic_id, partitions)
        return topics

    def copy(self) -> None:
        """Copy the previous target even without a change, as Kafka does."""
        _ = self.changed

    def add(self, topic_id: bytes, partition: int, capacity: int = 16) -> None:
        """Add a partition; `capacity` is the initial number of buckets of a new topic's set."""
        topics = self.changed
        partitions = topics.get(topic_id)
        if partitions is None:
            partitions = HashTable(integer_hash, capacity)
            topics.add(topic_id, partitions)
        partitions.put(partition, None)

    def remove(self, topic_id: bytes, partition: int) -> None:
        """Remove a partition, which must be in the target, and its topic if none is left."""
        topics = self.changed
        del topics[topic_id][partition]
        if not topics[topic_id]:
            del topics[topic_id]

    def finish(self) -> Partitions:
        """Return the target; the old object if nothing has changed."""
        topics = self._changed
        if topics is None:
            return self.previous
        return {topic_id: topics[topic_id].in_order() for topic_id in topics.in_order()}

"""The partitions of a member, as a target and as owned since an epoch, and the topics that a group subscribes to.

Mirrors `org.apache.kafka.coordinator.group.modern.Assignment`, the maps of partitions with epochs of
`ConsumerGroupMember`, `SubscriptionCount`, `TopicIds`, `Utils.incValue` and `ConsumerGroup.subscriptionType`.
Topics and partitions of a target stand in the order in which Kafka's tables hand them out, because assignors
walk over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker_sim.hash_order.hash_codes import integer_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable, TimelineMap, copied_capacity, hash_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.metadata import MetadataImage


Partitions: TypeAlias = Mapping[bytes, Sequence[int]]
"""Partitions by topic id; no topic is without partitions."""

Epochs: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""The member epochs at which partitions were assigned, by topic id and partition."""


class AssignorError(Exception):
    """A target that cannot be computed; mirrors `PartitionAssignorException` and `TaskAssignorException`."""


NO_PARTITIONS: Final[Partitions] = {}
NO_EPOCHS: Final[Epochs] = {}


def same_partitions(left: Partitions, right: Partitions) -> bool:
    """Return whether both have the same partitions, in whatever order."""
    return left.keys() == right.keys() and all(
        left[topic] is right[topic] or set(left[topic]) == set(right[topic]) for topic in left
    )


def target_from_record(stored: Iterable[tuple[bytes, Sequence[int]]]) -> Partitions:
    """Return a target as Kafka holds it when it has taken it from its record."""
    target = dict(stored)
    return {
        topic: tuple(hash_order(target[topic], integer_hash, copied_capacity(len(target[topic]))))
        for topic in hash_order(target, uuid_hash)
    }


def epochs_in_order(epochs: Epochs) -> list[tuple[bytes, list[int]]]:
    """Return topics and partitions as the nested `HashMap`s iterate over them."""
    return [(topic, hash_order(epochs[topic], integer_hash)) for topic in hash_order(epochs, uuid_hash)]


class SubscriptionCount(NamedTuple):
    """The number of members that name a topic, and the number of expressions that match it."""

    by_name: int
    by_regex: int


class TopicCounts(dict[str, SubscriptionCount]):
    """The topics that a group subscribes to."""

    def add_names(self, names: Iterable[str], by: int) -> None:
        """Count one member more, or one less (`by` -1), that names these topics."""
        self._add(names, by, 0)

    def add_regex(self, topics: Iterable[str], by: int) -> None:
        """Count one expression more, or one less (`by` -1), that matches these topics."""
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
    """Return the ids of those topics that exist."""
    topics = image.topics
    return [topics[name].topic_id for name in names if name in topics]


def is_homogeneous(regexes: Mapping[str, int], topics: Mapping[str, SubscriptionCount], members: int) -> bool:
    """Return whether as many members as there are subscribe to the same topics."""
    if not regexes:
        return all(count.by_name == members for count in topics.values())
    if next(iter(regexes.values())) != members:
        return False
    return all(count.by_regex == 1 and count.by_name == 0 for count in topics.values())


def add_count(counts: dict[str, int], name: str | None, by: int) -> None:
    """Add to a count; a name whose count is 0 is forgotten, and None and "" are no names."""
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
    """Return the name with the highest count, the first of several."""
    return max(names, key=lambda name: counts[name], default=None)

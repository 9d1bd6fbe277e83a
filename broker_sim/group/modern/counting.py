"""Counts of what the members of a group subscribe to.

Mirrors `SubscriptionCount`, `TopicIds`, `Utils.incValue` and `ConsumerGroup.subscriptionType`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.hash_order.java_order import HashTable, TimelineMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.metadata import MetadataImage


class SubscriptionCount(NamedTuple):
    """How many members name a topic, and how many expressions match it."""

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

"""The topics that a group subscribes to; mirrors `SubscriptionCount` and `TopicIds`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

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

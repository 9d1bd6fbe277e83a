"""Identifiers of partitions; mirrors `TopicPartition` and `TopicIdPartition` of Kafka's clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

Topic = TypeVar("Topic")
Entry = TypeVar("Entry")


class TopicPartition(NamedTuple):
    """A topic's name and the number of one of its partitions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A topic id and a partition number; the topic name is None if no topic has that id."""

    topic_id: bytes
    partition: int
    topic: str | None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition with its topic name, which is empty if unknown."""
        return TopicPartition(self.topic or "", self.partition)


def by_topic(entries: Iterable[tuple[Topic, Entry]]) -> dict[Topic, list[Entry]]:
    """Group entries by topic, as messages list them; topics and entries keep their order."""
    topics: dict[Topic, list[Entry]] = {}
    for topic, entry in entries:
        topics.setdefault(topic, []).append(entry)
    return topics

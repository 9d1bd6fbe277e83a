"""The names of partitions, as in `org.apache.kafka.common.TopicPartition`."""

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
    """A partition by the id of its topic; the name is None where no topic has that id."""

    topic_id: bytes
    partition: int
    topic: str | None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition by the name of its topic; empty without one."""
        return TopicPartition(self.topic or "", self.partition)


def by_topic(entries: Iterable[tuple[Topic, Entry]]) -> dict[Topic, list[Entry]]:
    """Return what belongs to each topic, as messages list it; both in the order in which they come."""
    topics: dict[Topic, list[Entry]] = {}
    for topic, entry in entries:
        topics.setdefault(topic, []).append(entry)
    return topics

"""Share partitions of a group that have persisted state; mirrors `ShareGroupStatePartitionMetadataInfo`.

A partition of a subscribed topic is initialized at the share coordinator before members get it:

    unknown ---> initializing ---> initialized ---> deleting ---> unknown
                 asked for         members may      its offsets
                                   have it          are deleted

Topics are deleted as a whole. A topic that is initialized again is not being deleted any more. The values
never change: each step makes another one, which is written as a record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker_sim.hash_order.hash_codes import string_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable, hash_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.group import record_messages
    from broker_sim.metadata import MetadataImage

UNKNOWN_NAME: Final = "<UNKNOWN>"
"""The name of a topic that is gone."""


class TopicStatePartitions(NamedTuple):
    """Partitions of one topic; mirrors `InitMapValue`."""

    name: str
    partitions: frozenset[int]
    timestamp_ms: int
    """Time at which their record was replayed (wall clock)."""


Topics: TypeAlias = Mapping[bytes, TopicStatePartitions]
Numbers: TypeAlias = Mapping[bytes, Collection[int]]
"""Partitions by topic id."""


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """The share partitions of a group by the progress of their state."""

    initializing: Topics = field(default_factory=dict)
    initialized: Topics = field(default_factory=dict)
    deleting: frozenset[bytes] = frozenset()

    @classmethod
    def of_record(cls, value: record_messages.ShareGroupStatePartitionMetadataValue, now_ms: int) -> StatePartitions:
        """Return what a record says, taken in at that time."""
        return cls(
            _of_record(value.initializing_topics, now_ms),
            _of_record(value.initialized_topics, now_ms),
            frozenset(topic.topic_id for topic in value.deleting_topics),
        )

    def missing(self, names: Iterable[str], image: MetadataImage, now_ms: int, retry_ms: int) -> Topics:
        """Return which partitions of these topics are to be initialized.

        Those that were asked for `retry_ms` ago, and are not there yet, are asked for again. The topics
        are in the order of Kafka's hash map.
        """
        recent = {
            topic_id: topic for topic_id, topic in self.initializing.items() if now_ms - topic.timestamp_ms < retry_ms
        }
        existing = _combined(self.initialized, recent)
        missing: HashTable[bytes, TopicStatePartitions] = HashTable(uuid_hash)
        for name in hash_order(list(names), string_hash):
            topic = image.topics.get(name)
            if topic is None:
                continue
            count = len(topic.partitions)
            there = existing[topic.topic_id].partitions if topic.topic_id in existing else frozenset()
            if not there or len(there) < count:
                partitions = frozenset(range(count)) - there
                missing.add(topic.topic_id, TopicStatePartitions(name, partitions, now_ms))
        return {topic_id: missing[topic_id] for topic_id in missing.in_order()}

    def with_initializing(self, topics: Topics) -> StatePartitions:
        """Return it with partitions that are asked for."""
        initializing = _combined(self.initializing, topics)
        deleting = self.deleting.difference(initializing)
        return StatePartitions(initializing, self.initialized, deleting)

    def with_initialized(self, topics: Topics) -> StatePartitions:
        """Return it with partitions that have their state now."""
        numbers = {topic_id: topic.partitions for topic_id, topic in topics.items()}
        return StatePartitions(_without(self.initializing, numbers), _combined(self.initialized, topics), self.deleting)

    def without_initializing(self, numbers: Numbers) -> StatePartitions:
        """Return it without partitions whose state could not be made."""
        return StatePartitions(_without(self.initializing, numbers), self.initialized, self.deleting)

    def with_deleting(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """Return it with initialized topics whose state is being deleted."""
        initialized = _without_topics(self.initialized, topic_ids)
        return StatePartitions(self.initializing, initialized, self.deleting.union(topic_ids))

    def with_deleted(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """Return it with topics whose state is gone."""
        deleting = self.deleting.difference(topic_ids)
        return StatePartitions(self.initializing, self.initialized, deleting)

    def without_topics(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """Return it without topics that are gone; itself if it has none of them."""
        existing = {*self.initializing, *self.initialized, *self.deleting}
        if existing.isdisjoint(topic_ids):
            return self
        return StatePartitions(
            _without_topics(self.initializing, topic_ids),
            _without_topics(self.initialized, topic_ids),
            self.deleting.difference(topic_ids),
        )

    def to_delete(self, image: MetadataImage) -> Topics:
        """Return all that there may be state of, with what an earlier deletion has left."""
        topics_being_deleted = {}
        for topic_id in self.deleting:
            topic = image.topic_by_id(topic_id)
            if topic is not None:
                partitions = frozenset(range(len(topic.partitions)))
                topics_being_deleted[topic_id] = TopicStatePartitions(topic.name, partitions, -1)
        return _combined(_combined(self.initialized, self.initializing), topics_being_deleted)


NO_STATE: Final = StatePartitions()


def named(numbers: Numbers, image: MetadataImage, now_ms: int) -> Topics:
    """Return partitions with the names of their topics; mirrors `attachInitValue`."""
    return {
        topic_id: TopicStatePartitions(image.topic_names.get(topic_id, UNKNOWN_NAME), frozenset(partitions), now_ms)
        for topic_id, partitions in numbers.items()
    }


def _of_record(
    topics: Iterable[record_messages.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo], now_ms: int
) -> Topics:
    return {
        topic.topic_id: TopicStatePartitions(topic.topic_name, frozenset(topic.partitions), now_ms) for topic in topics
    }


def _combined(older: Topics, newer: Topics) -> dict[bytes, TopicStatePartitions]:
    """Return the partitions of both; names and times are those of the newer ones."""
    combined = dict(older)
    for topic_id, topic in newer.items():
        before = older[topic_id].partitions if topic_id in older else frozenset()
        combined[topic_id] = topic._replace(partitions=before | topic.partitions)
    return combined


def _without(topics: Topics, numbers: Numbers) -> dict[bytes, TopicStatePartitions]:
    """Return the topics without these partitions; none is left without any."""
    remaining_topics = {}
    for topic_id, topic in topics.items():
        if topic_id not in numbers:
            remaining_topics[topic_id] = topic
            continue
        partitions = topic.partitions.difference(numbers[topic_id])
        if partitions:
            remaining_topics[topic_id] = topic._replace(partitions=partitions)
    return remaining_topics


def _without_topics(topics: Topics, topic_ids: Collection[bytes]) -> dict[bytes, TopicStatePartitions]:
    return {topic_id: topic for topic_id, topic in topics.items() if topic_id not in topic_ids}

"""Share partitions of a group that have persisted state; mirrors `ShareGroupStatePartitionMetadataInfo`.

A partition of a subscribed topic is initialized at the share coordinator before it is assigned to members:

    unknown ---> initializing ---> initialized ---> deleting ---> unknown
                 requested         can be           its offsets
                                   assigned         are deleted

Topics are deleted as a whole. Initializing a topic again cancels its deletion. A `StatePartitions` is immutable:
each step creates another one, which is written as a record.
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
"""The name of deleted topics."""


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
        """Return the contents of a record that is replayed at `now_ms`."""
        return cls(
            _of_record(value.initializing_topics, now_ms),
            _of_record(value.initialized_topics, now_ms),
            frozenset(topic.topic_id for topic in value.deleting_topics),
        )

    def missing(self, names: Iterable[str], image: MetadataImage, now_ms: int, retry_ms: int) -> Topics:
        """Return the partitions of these topics that must be initialized, in the order of Kafka's hash map.

        Partitions still initializing after `retry_ms` are returned again.
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
            existing_partitions = existing[topic.topic_id].partitions if topic.topic_id in existing else frozenset()
            if not existing_partitions or len(existing_partitions) < count:
                partitions = frozenset(range(count)) - existing_partitions
                missing.add(topic.topic_id, TopicStatePartitions(name, partitions, now_ms))
        return {topic_id: missing[topic_id] for topic_id in missing.in_order()}

    def with_initializing(self, topics: Topics) -> StatePartitions:
        """Return a copy in which these partitions are initializing."""
        initializing = _combined(self.initializing, topics)
        deleting = self.deleting.difference(initializing)
        return StatePartitions(initializing, self.initialized, deleting)

    def with_initialized(self, topics: Topics) -> StatePartitions:
        """Return a copy in which these partitions are initialized."""
        numbers = {topic_id: topic.partitions for topic_id, topic in topics.items()}
        return StatePartitions(_without(self.initializing, numbers), _combined(self.initialized, topics), self.deleting)

    def without_initializing(self, numbers: Numbers) -> StatePartitions:
        """Return a copy in which these partitions, which could not be initialized, are not initializing."""
        return StatePartitions(_without(self.initializing, numbers), self.initialized, self.deleting)

    def with_deleting(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """Return a copy in which these topics are being deleted."""
        initialized = _without_topics(self.initialized, topic_ids)
        return StatePartitions(self.initializing, initialized, self.deleting.union(topic_ids))

    def with_deleted(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """Return a copy in which these topics are no longer being deleted."""
        deleting = self.deleting.difference(topic_ids)
        return StatePartitions(self.initializing, self.initialized, deleting)

    def without_topics(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """Return a copy without deleted topics, or this object if it has none of them."""
        existing = {*self.initializing, *self.initialized, *self.deleting}
        if existing.isdisjoint(topic_ids):
            return self
        return StatePartitions(
            _without_topics(self.initializing, topic_ids),
            _without_topics(self.initialized, topic_ids),
            self.deleting.difference(topic_ids),
        )

    def to_delete(self, image: MetadataImage) -> Topics:
        """Return all partitions that may have state, including those of topics that are still being deleted."""
        topics_being_deleted = {}
        for topic_id in self.deleting:
            topic = image.topic_by_id(topic_id)
            if topic is not None:
                partitions = frozenset(range(len(topic.partitions)))
                topics_being_deleted[topic_id] = TopicStatePartitions(topic.name, partitions, -1)
        return _combined(_combined(self.initialized, self.initializing), topics_being_deleted)


NO_STATE: Final = StatePartitions()


def named(numbers: Numbers, image: MetadataImage, now_ms: int) -> Topics:
    """Return the partitions with their topics' names and `now_ms` as timestamp; mirrors `attachInitValue`."""
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
    """Return the partitions of both mappings; names and timestamps are those of `newer`."""
    combined = dict(older)
    for topic_id, topic in newer.items():
        old_partitions = older[topic_id].partitions if topic_id in older else frozenset()
        combined[topic_id] = topic._replace(partitions=old_partitions | topic.partitions)
    return combined


def _without(topics: Topics, numbers: Numbers) -> dict[bytes, TopicStatePartitions]:
    """Return the topics without these partitions, and without topics that have none left."""
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

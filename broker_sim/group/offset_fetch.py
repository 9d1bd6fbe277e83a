"""The response of OffsetFetch for one group; mirrors `OffsetMetadataManager.fetchOffsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol import messages
from broker_sim.protocol.special_values import NO_EPOCH, NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.group.offsets import CommittedOffset, OffsetStore, TransactionalOffsets
    from broker_sim.metadata import MetadataImage

EVERYTHING: Final = 2**63 - 1
"""A high watermark that also shows uncommitted offsets."""

RequestedGroup = messages.OffsetFetchRequest.OffsetFetchRequestGroup
RequestedTopic = messages.OffsetFetchRequest.OffsetFetchRequestTopics
Group = messages.OffsetFetchResponse.OffsetFetchResponseGroup
Topic = messages.OffsetFetchResponse.OffsetFetchResponseTopics
Partition = messages.OffsetFetchResponse.OffsetFetchResponsePartitions


class OffsetQuery(NamedTuple):
    """An OffsetFetch request for one group."""

    group: RequestedGroup
    require_stable: bool
    by_topic_id: bool
    error_of: Callable[[str, int], ErrorCode]
    """Returns the error of a topic and a partition that does not depend on the group's offsets, NONE without one."""


class OffsetView:
    """The offsets of a group that are visible to a query."""

    def __init__(
        self,
        query: OffsetQuery,
        offsets: OffsetStore,
        transactional: TransactionalOffsets,
        high_watermark: int,
        image: MetadataImage,
    ) -> None:
        self._query = query
        self._group_id = query.group.group_id
        self._offsets = offsets
        self._transactional = transactional
        self._high_watermark = EVERYTHING if query.require_stable else high_watermark
        self._image = image

    def answer(self, *, has_offsets: bool) -> Group:
        """Return the response for the group; if all topics are requested, `has_offsets=False` returns none."""
        requested_group, by_id = self._query.group, self._query.by_topic_id
        if requested_group.topics is None:
            offsets = self._offsets.committed_of(self._group_id, self._high_watermark)
            topics = self._all_topics(offsets if has_offsets else ())
        else:
            topics = [self._named_topic(topic) for topic in requested_group.topics]
            # As in Kafka, topics of unknown ids come last.
            topics.sort(key=lambda topic: not topic.name and by_id)
        return Group(group_id=self._group_id, topics=topics)

    def _is_unstable(self, topic: str, partition: int) -> bool:
        """Whether stable offsets are required, and an open transaction has an offset of the partition."""
        return self._query.require_stable and self._transactional.contains(self._group_id, topic, partition)

    def _all_topics(self, offsets: Iterable[tuple[str, int, CommittedOffset]]) -> list[Topic]:
        """Return all offsets by topic; in requests by topic id, without those of deleted topics."""
        image_topics = self._image.topics
        topics: dict[str, Topic] = {}
        for name, partition, committed in offsets:
            topic_id = image_topics[name].topic_id if name in image_topics else NO_TOPIC_ID
            if self._query.by_topic_id and topic_id == NO_TOPIC_ID:
                continue
            topic = topics.setdefault(name, Topic(name=name, topic_id=topic_id))
            topic.partitions.append(
                no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if self._is_unstable(name, partition)
                else _partition(partition, committed)
            )
        return list(topics.values())

    def _named_topic(self, requested_topic: RequestedTopic) -> Topic:
        by_id = self._query.by_topic_id
        name = self._image.topic_names.get(requested_topic.topic_id, "") if by_id else requested_topic.name
        topic = Topic(name=name, topic_id=requested_topic.topic_id)
        for index in requested_topic.partition_indexes:
            error_code = self._query.error_of(name, index)
            if not error_code and by_id and not name:
                error_code = ErrorCode.UNKNOWN_TOPIC_ID
            if not error_code and self._is_unstable(name, index):
                error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            committed = None
            if not error_code:
                committed = self._offsets.get_committed(self._group_id, name, index, self._high_watermark)
            if committed is None or not is_of_topic(committed, requested_topic.topic_id):
                topic.partitions.append(no_offset(index, error_code))
            else:
                topic.partitions.append(_partition(index, committed))
        return topic


def is_of_topic(committed: CommittedOffset, topic_id: bytes) -> bool:
    """Whether the offset belongs to the topic with that id, or one of the ids is unknown."""
    return NO_TOPIC_ID in (committed.topic_id, topic_id) or committed.topic_id == topic_id


def _partition(index: int, committed: CommittedOffset) -> Partition:
    return Partition(index, committed.offset, committed.leader_epoch, committed.metadata)


def no_offset(index: int, error_code: ErrorCode) -> Partition:
    """Return the response for a partition without an offset, or with an error."""
    return Partition(index, NO_OFFSET, NO_EPOCH, "", error_code)

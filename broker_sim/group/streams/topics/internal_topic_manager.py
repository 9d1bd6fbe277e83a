"""Configures a topology for the existing topics; mirrors `InternalTopicManager`.

1. check that all source topics exist
2. compute the partition counts of repartition topics, and make them equal within copartition groups
3. compute the partition counts of changelog topics, and the tasks of subtopologies
4. return missing internal topics, and check the partition counts of existing ones
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.java_text import text_order
from broker_sim.group.streams.topics.configured_topology import (
    ConfiguredInternalTopic,
    ConfiguredSubtopology,
    ConfiguredTopology,
    Status,
    TopicConfigurationError,
)
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable, copied_capacity, hash_order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.group.streams.topology import StreamsTopology, Subtopology, TopicInfo
    from broker_sim.metadata import MetadataImage
    from broker_sim.protocol import messages


_SHOWN_TOPICS: Final = 3


def configure_topics(topology: StreamsTopology, metadata_hash: int, image: MetadataImage) -> ConfiguredTopology:
    """Return the topology as configured for the topics of the image, or with the error that prevents this.

    Raises ApiError STREAMS_INVALID_TOPOLOGY for a topology that cannot work with any topics, and like Kafka
    UNKNOWN_SERVER_ERROR for an inconsistent one.
    """
    groups = [group for subtopology in topology.subtopologies.values() for group in _copartition_groups(subtopology)]
    try:
        _check_source_topics(topology, image)
        counts = _Counts(topology, groups, image)
        configured = {
            subtopology_id: _configure(topology.subtopologies[subtopology_id], counts)
            for subtopology_id in sorted(topology.subtopologies, key=text_order)
        }
        missing = _missing_internal_topics(configured.values(), topology, image)
    except TopicConfigurationError as error:
        return ConfiguredTopology(topology.topology_epoch, metadata_hash, None, {}, error)
    incomplete = None
    if missing:
        text = f"Internal topics are missing: {_summary(missing)}"
        incomplete = TopicConfigurationError(Status.MISSING_INTERNAL_TOPICS, text)
    return ConfiguredTopology(topology.topology_epoch, metadata_hash, configured, missing, incomplete)


def _check_source_topics(topology: StreamsTopology, image: MetadataImage) -> None:
    missing = {
        topic
        for subtopology in topology.subtopologies.values()
        for topic in subtopology.source_topics
        if topic not in image.topics
    }
    if missing:
        raise TopicConfigurationError(
            Status.MISSING_SOURCE_TOPICS, f"Source topics {_summary(sorted(missing, key=text_order))} are missing."
        )


class _Counts:
    """Partition counts by topic: of existing topics, otherwise the computed ones (`decided`)."""

    def __init__(self, topology: StreamsTopology, groups: Iterable[Sequence[str]], image: MetadataImage) -> None:
        self._image = image
        self.decided: dict[str, int] = {}
        subtopologies = topology.subtopologies.values()
        self.decided.update(repartition_topic_counts(subtopologies, self.of))
        self._enforce_copartitioning(subtopologies, groups)
        self.decided.update(changelog_topic_counts(subtopologies, self.of))

    def of(self, topic: str) -> int:
        """Return the partition count of an existing topic, otherwise the computed one."""
        existing = self._image.topics.get(topic)
        return self.decided[topic] if existing is None else len(existing.partitions)

    def _enforce_copartitioning(self, subtopologies: Iterable[Subtopology], groups: Iterable[Sequence[str]]) -> None:
        topics = [topic for subtopology in subtopologies for topic in subtopology.repartition_source_topics]
        fixed = {topic.name for topic in topics if topic.partitions != 0}
        flexible = {topic.name for topic in topics if topic.partitions == 0}
        for group in groups:
            self.decided.update(enforce_copartitioning(group, fixed, flexible, self.of))


def _copartition_groups(subtopology: Subtopology) -> Iterable[Sequence[str]]:
    """Yield the topic names of each group, which the topology identifies by index."""
    sources = subtopology.source_topics
    repartition = [topic.name for topic in subtopology.repartition_source_topics]
    for group in subtopology.copartition_groups:
        names = [_at(sources, place) for place in group.source_topics]
        names += [_at(repartition, place) for place in group.repartition_source_topics]
        yield hash_order(dict.fromkeys(names), string_hash)


def _at(names: Sequence[str], place: int) -> str:
    if not 0 <= place < len(names):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return names[place]


def _configure(subtopology: Subtopology, counts: _Counts) -> ConfiguredSubtopology:
    number_of_tasks = max(counts.of(topic) for topic in source_names(subtopology))
    sources, sinks = subtopology.source_topics, subtopology.repartition_sink_topics
    return ConfiguredSubtopology(
        number_of_tasks,
        hash_order(dict.fromkeys(sources), string_hash, copied_capacity(len(sources))),
        _configured_topics(subtopology.repartition_source_topics, counts),
        hash_order(dict.fromkeys(sinks), string_hash, copied_capacity(len(sinks))),
        _configured_topics(subtopology.state_changelog_topics, counts),
    )


def _configured_topics(topics: Sequence[TopicInfo], counts: _Counts) -> dict[str, ConfiguredInternalTopic]:
    """Return the topics by name. Like Kafka, raises `ApiError` UNKNOWN_SERVER_ERROR for duplicates."""
    configured = {topic.name: _configured_topic(topic, counts) for topic in topics}
    if len(configured) < len(topics):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return {name: configured[name] for name in hash_order(configured, string_hash)}


def _configured_topic(topic: TopicInfo, counts: _Counts) -> ConfiguredInternalTopic:
    partitions = topic.partitions or counts.decided[topic.name]
    configs = {config.key: config.value for config in topic.topic_configs}
    if partitions < 1 or len(configs) < len(topic.topic_configs):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return ConfiguredInternalTopic(
        topic.name,
        partitions,
        topic.replication_factor,
        {key: configs[key] for key in hash_order(configs, string_hash)},
    )


def _missing_internal_topics(
    subtopologies: Iterable[ConfiguredSubtopology], topology: StreamsTopology, image: MetadataImage
) -> Mapping[str, messages.CreateTopicsRequest.CreatableTopic]:
    """Return missing internal topics by name, in the order of Kafka's table."""
    internal_topics: HashTable[str, ConfiguredInternalTopic] = HashTable(string_hash)
    for subtopology in subtopologies:
        for kind in (subtopology.repartition_source_topics, subtopology.state_changelog_topics):
            for name, topic in kind.items():
                internal_topics.put(name, topic)
    for name in topology.required_topics():
        existing = image.topics.get(name)
        if existing is None or name not in internal_topics:
            continue
        expected_count, count = internal_topics.pop(name).partitions, len(existing.partitions)
        if count != expected_count:
            raise TopicConfigurationError(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected_count}, found {count}",
            )
    return {name: internal_topics[name].creatable() for name in internal_topics.in_order()}


def _summary(topics: Collection[str]) -> str:
    """Return the first three names, and the number of others."""
    names = ", ".join(list(topics)[:_SHOWN_TOPICS])
    hidden = len(topics) - _SHOWN_TOPICS
    return f"{names} and {hidden} additional topics" if hidden > 0 else names


def changelog_topic_counts(
    subtopologies: Iterable[Subtopology], partition_count: Callable[[str], int]
) -> dict[str, int]:
    """Return the partition count of each changelog topic: one per task; mirrors `ChangelogTopics`.

    `partition_count(topic)` returns the count of a topic that a subtopology reads.
    Raises ApiError STREAMS_INVALID_TOPOLOGY if a subtopology has no source topics.
    """
    counts: dict[str, int] = {}
    for subtopology in subtopologies:
        sources = source_names(subtopology)
        if not sources:
            raise ApiError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                f"No source topics found for subtopology {subtopology.subtopology_id}",
            )
        largest = max(partition_count(topic) for topic in sources)
        for changelog in subtopology.state_changelog_topics:
            counts[changelog.name] = largest
    return counts


def source_names(subtopology: Subtopology) -> list[str]:
    """Return the topics that a subtopology reads: source topics, then repartition source topics."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def repartition_topic_counts(
    subtopologies: Iterable[Subtopology], partition_count: Callable[[str], int]
) -> dict[str, int]:
    """Return the partition count of each repartition topic; mirrors `RepartitionTopics`.

    The application may set it. Otherwise it is that of the largest source topic of the subtopology that writes to
    the topic, which may itself be a repartition topic.
    `partition_count(topic)` returns the count of a source topic; all of them exist. Raises ApiError
    STREAMS_INVALID_TOPOLOGY if counts depend on each other in a cycle, or no subtopology writes to a topic.
    """
    subtopologies = list(subtopologies)
    counts = {
        topic.name: topic.partitions
        for subtopology in subtopologies
        for topic in subtopology.repartition_source_topics
        if topic.partitions != 0
    }
    is_complete = False
    while not is_complete:
        is_complete, before = True, len(counts)
        for subtopology in subtopologies:
            for sink in subtopology.repartition_sink_topics:
                if sink not in counts:
                    count = _largest(subtopology, counts, partition_count)
                    if count is None:
                        is_complete = False
                    else:
                        counts[sink] = count
        if not is_complete and len(counts) == before:
            raise ApiError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics."
                " There may be loops in the topology that cannot be resolved.",
            )
    if any(_lacks_sink(subtopology.repartition_source_topics, counts) for subtopology in subtopologies):
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            "Failed to compute number of partitions for all repartition topics, because"
            " a repartition source topic is never used as a sink topic.",
        )
    return counts


def _largest(subtopology: Subtopology, counts: Mapping[str, int], partition_count: Callable[[str], int]) -> int | None:
    """Return the largest partition count among the source topics with a known count, None if there is none.

    As in Kafka, repartition topics without a count are ignored, so the order of subtopologies matters.
    """
    sizes = [counts[topic.name] for topic in subtopology.repartition_source_topics if topic.name in counts]
    sizes += [partition_count(topic) for topic in subtopology.source_topics]
    return max(sizes, default=None)


def _lacks_sink(topics: Iterable[TopicInfo], counts: Mapping[str, int]) -> bool:
    return any(topic.name not in counts for topic in topics)


def enforce_copartitioning(
    group: Sequence[str], fixed: AbstractSet[str], flexible: AbstractSet[str], partition_count: Callable[[str], int]
) -> dict[str, int]:
    """Return the partition count of a group's repartition topics; mirrors `CopartitionedTopicsEnforcer`.

    Topics that a subtopology joins must have equal partition counts: equal keys are then in partitions with the same
    number, which one task reads. Such topics form a copartition group. Repartition topics are either fixed (the
    application sets their count) or flexible.

    `group` is in the order of Kafka's set; `fixed` and `flexible` are all repartition topics of the topology;
    `partition_count(topic)` returns the current count. Raises `TopicConfigurationError` if the counts cannot be
    made equal.

    If the group has other topics, their count is used. Otherwise it is that of the fixed topics, which as in Kafka
    must be equal in the whole topology. Without fixed topics, it is the largest count.
    """
    if not group:
        return {}
    counts = {topic: partition_count(topic) for topic in group}
    repartition = {topic: count for topic, count in counts.items() if topic in fixed | flexible}
    others = {topic: count for topic, count in counts.items() if topic not in repartition}
    if others:
        needed = _same_count(set(others.values()), others)
    elif fixed:
        needed = _same_count({partition_count(topic) for topic in fixed}, repartition)
    else:
        needed = max(repartition.values())
    for topic in hash_order(repartition, string_hash):
        if topic in fixed and repartition[topic] != needed:
            raise TopicConfigurationError(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{repartition[topic]}] of repartition topic [{topic}]"
                f" doesn't match number of partitions [{needed}] of the source topic.",
            )
    return dict.fromkeys(repartition, needed)


def _same_count(counts: AbstractSet[int], counts_by_topic: Mapping[str, int]) -> int:
    """Return the only element of `counts`; the error for several lists the topics in `counts_by_topic`."""
    if len(counts) == 1:
        return next(iter(counts))
    topics = ", ".join(f"{topic}={counts_by_topic[topic]}" for topic in sorted(counts_by_topic, key=text_order))
    raise TopicConfigurationError(
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        f"Following topics do not have the same number of partitions: [{{{topics}}}]",
    )

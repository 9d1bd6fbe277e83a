"""The configuration of a topology by the existing topics; mirrors `InternalTopicManager`.

1. all source topics have to exist
2. repartition topics get their numbers of partitions, then copartition groups equal ones
3. changelog topics get theirs, and subtopologies their tasks
4. internal topics that do not exist are to be created, those that do have to have that number
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
    """Return the topology as configured for the topics of the image, or with the error that prevents it.

    Raises ApiError STREAMS_INVALID_TOPOLOGY for a topology that no topics can be right for, and as Kafka
    UNKNOWN_SERVER_ERROR for one that contradicts itself.
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
    """Numbers of partitions by topic; those decided here count for topics that do not exist."""

    def __init__(self, topology: StreamsTopology, groups: Iterable[Sequence[str]], image: MetadataImage) -> None:
        self._image = image
        self.decided: dict[str, int] = {}
        subtopologies = topology.subtopologies.values()
        self.decided.update(repartition_topic_counts(subtopologies, self.of))
        self._enforce_copartitioning(subtopologies, groups)
        self.decided.update(changelog_topic_counts(subtopologies, self.of))

    def of(self, topic: str) -> int:
        """Return the number of partitions of a topic that exists, or of one that it was decided for."""
        existing = self._image.topics.get(topic)
        return self.decided[topic] if existing is None else len(existing.partitions)

    def _enforce_copartitioning(self, subtopologies: Iterable[Subtopology], groups: Iterable[Sequence[str]]) -> None:
        topics = [topic for subtopology in subtopologies for topic in subtopology.repartition_source_topics]
        fixed = {topic.name for topic in topics if topic.partitions != 0}
        flexible = {topic.name for topic in topics if topic.partitions == 0}
        for group in groups:
            self.decided.update(enforce_copartitioning(group, fixed, flexible, self.of))


def _copartition_groups(subtopology: Subtopology) -> Iterable[Sequence[str]]:
    """Yield the names of the topics of each group; the topology tells them by their places."""
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
    """Return the topics by name. Kafka cannot use a name or a configuration that comes twice."""
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
    """Return the internal topics that do not exist, by name, in the order of Kafka's table."""
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
    """Return the first three names, and how many more there are."""
    names = ", ".join(list(topics)[:_SHOWN_TOPICS])
    hidden = len(topics) - _SHOWN_TOPICS
    return f"{names} and {hidden} additional topics" if hidden > 0 else names


def changelog_topic_counts(
    subtopologies: Iterable[Subtopology], partition_count: Callable[[str], int]
) -> dict[str, int]:
    """Return the number of partitions of each changelog topic: one for each task; mirrors `ChangelogTopics`.

    `partition_count(topic)` returns that of a topic that a subtopology reads.
    Raises ApiError STREAMS_INVALID_TOPOLOGY if a subtopology reads nothing.
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
    """Return the topics that a subtopology reads: source topics, then repartition topics."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def repartition_topic_counts(
    subtopologies: Iterable[Subtopology], partition_count: Callable[[str], int]
) -> dict[str, int]:
    """Return the number of partitions of each repartition topic; mirrors `RepartitionTopics`.

    A topic has as many as the application says. If it says nothing, the topic has as many as the largest source
    topic of the subtopology that writes into it, which may be a repartition topic in its turn.
    `partition_count(topic)` returns that of a source topic; all of them exist. Raises ApiError
    STREAMS_INVALID_TOPOLOGY if numbers depend on each other in a circle, or nobody writes into a topic.
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
    """Return the partitions of the largest source topic as far as they are known, None if none is known.

    As in Kafka a repartition topic that is not known yet is left out, so the order of subtopologies counts.
    """
    sizes = [counts[topic.name] for topic in subtopology.repartition_source_topics if topic.name in counts]
    sizes += [partition_count(topic) for topic in subtopology.source_topics]
    return max(sizes, default=None)


def _lacks_sink(topics: Iterable[TopicInfo], counts: Mapping[str, int]) -> bool:
    return any(topic.name not in counts for topic in topics)


def enforce_copartitioning(
    group: Sequence[str], fixed: AbstractSet[str], flexible: AbstractSet[str], partition_count: Callable[[str], int]
) -> dict[str, int]:
    """Return the number of partitions of a group's repartition topics; mirrors `CopartitionedTopicsEnforcer`.

    Topics that a subtopology joins have equally many partitions: equal keys are then in partitions of the same
    number, so one task reads them. Such topics are a copartition group. Repartition topics are either fixed (the
    application says how many partitions they have) or flexible.

    `group` is in the order of Kafka's set; `fixed` and `flexible` are all repartition topics of the topology;
    `partition_count(topic)` returns the number so far. Raises `TopicConfigurationError` if they cannot have equally
    many.

    With other topics in the group their number counts. Without any it is the number of the fixed topics. As in
    Kafka, those of the whole topology have to agree then. Without fixed ones it is the largest number.
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
    """Return the one number that was found; the error tells of the topics in `counts_by_topic`."""
    if len(counts) == 1:
        return next(iter(counts))
    topics = ", ".join(f"{topic}={counts_by_topic[topic]}" for topic in sorted(counts_by_topic, key=text_order))
    raise TopicConfigurationError(
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        f"Following topics do not have the same number of partitions: [{{{topics}}}]",
    )

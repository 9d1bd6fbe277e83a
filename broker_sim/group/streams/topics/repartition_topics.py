"""How many partitions repartition topics have; mirrors `RepartitionTopics`.

A topic has as many as the application says. If it says nothing, the topic has as many as the largest source
topic of the subtopology that writes into it, which may be a repartition topic in its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim.group.streams.topology import Subtopology, TopicInfo


def repartition_topic_counts(
    subtopologies: Iterable[Subtopology], partition_count: Callable[[str], int]
) -> dict[str, int]:
    """Return the number of partitions by topic.

    `partition_count(topic)` tells it of a source topic; all of them exist. Raises ApiError
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
    known = [counts[topic.name] for topic in subtopology.repartition_source_topics if topic.name in counts]
    known += [partition_count(topic) for topic in subtopology.source_topics]
    return max(known, default=None)


def _lacks_sink(topics: Iterable[TopicInfo], counts: Mapping[str, int]) -> bool:
    return any(topic.name not in counts for topic in topics)

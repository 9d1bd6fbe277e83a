"""How many partitions changelog topics have: one for each task; mirrors `ChangelogTopics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.group.streams.topology import Subtopology


def changelog_topic_counts(
    subtopologies: Iterable[Subtopology], partition_count: Callable[[str], int]
) -> dict[str, int]:
    """Return the number of partitions by topic; `partition_count(topic)` tells it of what a subtopology reads.

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

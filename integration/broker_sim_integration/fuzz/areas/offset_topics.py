"""Topics in requests about a group's offsets, for areas with groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim_integration.fuzz.areas.area import once, pick

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence


def fetched_topics(
    names: Sequence[str] | None, draw_partitions: Callable[[], list[int]]
) -> list[dict[str, Any]] | None:
    """Return the topics of OffsetFetch, by name and id; None, for all committed ones, stays None."""
    if names is None:
        return None
    return [{"name": name, "topic_id": f"{name[:-1]}.id>", "partition_indexes": draw_partitions()} for name in names]


def deleted_topics(
    rng: random.Random, usual: Sequence[str], odd: Sequence[str], draw_partitions: Callable[[], list[int]]
) -> list[dict[str, Any]]:
    """Return one or two topics of OffsetDelete, each once."""
    topics = [
        {"name": pick(rng, usual, odd), "partitions": [{"partition_index": index} for index in draw_partitions()]}
        for _ in range(rng.randint(1, 2))
    ]
    return once(topics, "name")

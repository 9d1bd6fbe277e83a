"""The topologies of drawn streams groups: each group has its own, like an application."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.areas.area import pick

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

GROUPS: Final = ("<group1>", "<group1>", "<group1>", "<group2>", "<group2>", "<group3>", "<group4>")


def _internal(
    name: str, partitions: int = 0, replication_factor: int = 1, configs: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    return {
        "name": name,
        "partitions": partitions,
        "replication_factor": replication_factor,
        "topic_configs": [{"key": key, "value": value} for key, value in configs.items()],
    }


def _subtopology(subtopology_id: str, *sources: str, **fields: Any) -> dict[str, Any]:
    return {"subtopology_id": subtopology_id, "source_topics": list(sources), **fields}


def _together(sources: list[int], repartition_sources: list[int]) -> dict[str, Any]:
    return {"source_topics": sources, "repartition_source_topics": repartition_sources}


COMPACTED: Final = _internal("<changelog1>", configs={"cleanup.policy": "compact"})
TOPOLOGIES: Final = {
    # Reads topics, and has no state.
    "<group1>": [_subtopology("0", "<topic1>"), _subtopology("1", "<topic2>")],
    # Writes into a repartition topic, reads it, and keeps state.
    "<group2>": [
        _subtopology("0", "<topic1>", repartition_sink_topics=["<repartition1>"]),
        _subtopology(
            "1",
            repartition_source_topics=[_internal("<repartition1>", 3)],
            state_changelog_topics=[COMPACTED, _internal("<changelog2>", 0, 0)],
        ),
    ],
    # Reads topics together; they do not have the same number of partitions at first.
    "<group3>": [
        _subtopology(
            "0",
            "<topic1>",
            "<topic2>",
            state_changelog_topics=[_internal("<changelog3>")],
            copartition_groups=[_together([0, 1], [])],
        )
    ],
    # Reads a topic that does not exist at first, together with one whose size depends on it.
    "<group4>": [
        _subtopology("0", "<topic3>", repartition_sink_topics=["<repartition2>"]),
        _subtopology(
            "1",
            "<topic1>",
            repartition_source_topics=[_internal("<repartition2>")],
            copartition_groups=[_together([0], [0])],
        ),
        _subtopology("2", "<topic2>"),
    ],
}
"""Subtopologies of each group."""
SELDOM: Final[tuple[list[dict[str, Any]], ...]] = (
    [],
    [_subtopology("0")],
    [_subtopology("0", "")],
    [_subtopology("0", "__consumer_offsets")],
    [_subtopology("0", "<topic1>"), _subtopology("0", "<topic2>")],
    [_subtopology("0", "<topic1>", source_topic_regex=["t.*"])],
    [_subtopology("0", "<topic1>", state_changelog_topics=[_internal("<changelog4>", 2)])],
    [_subtopology("0", "<topic1>", state_changelog_topics=[_internal("<changelog5>", 0, 9)])],
    [_subtopology("0", "<topic1>", state_changelog_topics=[_internal("<changelog6>", configs={"own": "1"})])],
    [_subtopology("0", "<topic1>", repartition_source_topics=[_internal("<repartition3>", -1)])],
    [_subtopology("0", "<topic1>", repartition_source_topics=[_internal("<repartition4>")])],
    [_subtopology("0", "<topic1>", repartition_sink_topics=["<repartition5>"])],
    [_subtopology("0", "<topic1>", copartition_groups=[_together([7], [])])],
    [
        _subtopology(
            "0",
            "<topic1>",
            repartition_source_topics=[_internal("<repartition6>", 5)],
            copartition_groups=[_together([0], [0])],
        )
    ],
    [_subtopology("b", "<topic1>"), _subtopology("a", "<topic1>", "<topic2>")],
    [_subtopology("", "<topic1>")],
)


def topology(rng: random.Random, group: str) -> dict[str, Any]:
    """Return the topology of a group, rarely another one."""
    usual = TOPOLOGIES.get(group, TOPOLOGIES["<group1>"])
    epoch = pick(rng, [0], (1, 2, -1), 10)
    return {"epoch": epoch, "subtopologies": pick(rng, [usual], SELDOM, 9)}

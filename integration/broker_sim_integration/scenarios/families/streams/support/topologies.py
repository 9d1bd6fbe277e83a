"""Topologies of Kafka Streams applications, as their members send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Request = messages.StreamsGroupHeartbeatRequest
TaskIds = Request.TaskIds
Topology = Request.Topology
Subtopology = Request.Subtopology


def internal(
    name: str, partitions: int = 0, *, replicas: int = 1, configs: Mapping[str, str] | None = None
) -> messages.StreamsGroupHeartbeatRequest.TopicInfo:
    """Return a repartition or changelog topic; with 0 partitions the broker chooses their number."""
    told = [Request.KeyValue(key, value) for key, value in (configs or {}).items()]
    return Request.TopicInfo(name, partitions, replicas, told)


def subtopology(
    name: str,
    *sources: str,
    sinks: Sequence[str] = (),
    reads: Sequence[messages.StreamsGroupHeartbeatRequest.TopicInfo] = (),
    keeps: Sequence[messages.StreamsGroupHeartbeatRequest.TopicInfo] = (),
    copartitioned: Sequence[int] = (),
) -> messages.StreamsGroupHeartbeatRequest.Subtopology:
    """Return a subtopology: its source topics, its repartition topics, its changelogs.

    `copartitioned` are the indexes of the source topics that must have equal numbers of partitions.
    """
    groups = [Request.CopartitionGroup(list(copartitioned))] if copartitioned else []
    return Request.Subtopology(
        name,
        list(sources),
        state_changelog_topics=list(keeps),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=list(reads),
        copartition_groups=groups,
    )


def topology(
    *subtopologies: messages.StreamsGroupHeartbeatRequest.Subtopology, epoch: int = 0
) -> messages.StreamsGroupHeartbeatRequest.Topology:
    """Return a topology with these subtopologies."""
    return Request.Topology(epoch, list(subtopologies))

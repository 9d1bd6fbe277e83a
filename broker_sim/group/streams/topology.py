"""The topology of a Kafka Streams application; mirrors `StreamsTopology`.

A topology consists of subtopologies. Each has source topics, created by users, and internal topics, created
by the broker:
* repartition topics: one subtopology writes records with new keys to them (its sinks), another reads them
* changelog topics: they store the state of a subtopology
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.java_text import text_order
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Value = record_messages.StreamsGroupTopologyValue
Subtopology = Value.Subtopology
TopicInfo = Value.TopicInfo
Described = messages.StreamsGroupDescribeResponse


def topology_record_value(topology: messages.StreamsGroupHeartbeatRequest.Topology) -> Value:
    """Return the record value of a topology in a request."""
    return Value(
        topology.epoch,
        [
            Subtopology(
                subtopology_id=subtopology.subtopology_id,
                source_topics=subtopology.source_topics,
                source_topic_regex=subtopology.source_topic_regex,
                state_changelog_topics=_topic_infos(subtopology.state_changelog_topics),
                repartition_sink_topics=subtopology.repartition_sink_topics,
                repartition_source_topics=_topic_infos(subtopology.repartition_source_topics),
                copartition_groups=[
                    Value.CopartitionGroup(
                        group.source_topics, group.source_topic_regex, group.repartition_source_topics
                    )
                    for group in subtopology.copartition_groups
                ],
            )
            for subtopology in topology.subtopologies
        ],
    )


def _topic_infos(topics: Iterable[messages.StreamsGroupHeartbeatRequest.TopicInfo]) -> list[TopicInfo]:
    return [
        TopicInfo(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            [Value.TopicConfig(config.key, config.value) for config in topic.topic_configs],
        )
        for topic in topics
    ]


class StreamsTopology(NamedTuple):
    """A topology, with its subtopologies by id in the order of Kafka's table."""

    topology_epoch: int
    subtopologies: Mapping[str, Subtopology]

    @classmethod
    def from_record(cls, value: Value) -> StreamsTopology:
        """Return the topology in a record.

        Like Kafka, raises `ApiError` UNKNOWN_SERVER_ERROR for a negative epoch and for duplicate ids.
        """
        subtopologies = {subtopology.subtopology_id: subtopology for subtopology in value.subtopologies}
        if value.epoch < 0 or len(subtopologies) < len(value.subtopologies):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return cls(value.epoch, {key: subtopologies[key] for key in hash_order(subtopologies, string_hash)})

    @classmethod
    def from_request(cls, topology: messages.StreamsGroupHeartbeatRequest.Topology) -> StreamsTopology:
        """Return the topology in a request. Raises as `from_record`."""
        return cls.from_record(topology_record_value(topology))

    def required_topics(self) -> list[str]:
        """Return the names of source, repartition and changelog topics, in the order of Kafka's set."""
        names: dict[str, None] = {}
        for subtopology in self.subtopologies.values():
            names.update(dict.fromkeys(subtopology.source_topics))
            names.update((topic.name, None) for topic in subtopology.repartition_source_topics)
            names.update((topic.name, None) for topic in subtopology.state_changelog_topics)
        return hash_order(names, string_hash)

    def source_topic_map(self) -> dict[str, str]:
        """Return subtopology ids by the names of the source and repartition topics that they read."""
        subtopology_ids: dict[str, str] = {}
        for subtopology_id, subtopology in self.subtopologies.items():
            subtopology_ids.update(dict.fromkeys(subtopology.source_topics, subtopology_id))
            subtopology_ids.update((topic.name, subtopology_id) for topic in subtopology.repartition_source_topics)
        return subtopology_ids

    def describe(self) -> Described.Topology:
        """Return the topology for StreamsGroupDescribe, as long as it is not configured."""
        return Described.Topology(
            self.topology_epoch,
            [
                Described.Subtopology(
                    subtopology_id,
                    sorted(subtopology.source_topics, key=text_order),
                    sorted(subtopology.repartition_sink_topics, key=text_order),
                    _described(subtopology.state_changelog_topics),
                    _described(subtopology.repartition_source_topics),
                )
                for subtopology_id, subtopology in sorted(
                    self.subtopologies.items(), key=lambda item: text_order(item[0])
                )
            ],
        )


def _described(topics: Iterable[TopicInfo]) -> list[Described.TopicInfo]:
    return [
        Described.TopicInfo(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            [Described.KeyValue(config.key, config.value) for config in topic.topic_configs],
        )
        for topic in sorted(topics, key=lambda topic: text_order(topic.name))
    ]

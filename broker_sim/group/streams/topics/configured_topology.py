"""A topology with all that follows from the topics there are.

Mirrors `ConfiguredTopology`, `ConfiguredSubtopology`, `ConfiguredInternalTopic` and `TopologyMetadata`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_sim.group.java_text import text_order
from broker_sim.group.streams.assignors import SubtopologyTasks
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker_sim.group.streams.assignors import TopologyDescriber
    from broker_sim.group.streams.topics.topic_configuration_error import TopicConfigurationError

Described = messages.StreamsGroupDescribeResponse
CreateTopics = messages.CreateTopicsRequest

_DEFAULT_REPLICATION: Final = -1


@dataclass(frozen=True, slots=True)
class ConfiguredInternalTopic:
    """A repartition or changelog topic as it is to be; `replication_factor` 0 stands for the broker's default.

    `configs` are in the order of Kafka's table.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]

    def creatable(self) -> CreateTopics.CreatableTopic:
        """Return what creates the topic."""
        return CreateTopics.CreatableTopic(
            self.name,
            self.partitions,
            self.replication_factor or _DEFAULT_REPLICATION,
            configs=[CreateTopics.CreatableTopicConfig(key, value) for key, value in self.configs.items()],
        )

    def describe(self) -> Described.TopicInfo:
        """Return the topic as it is described."""
        return Described.TopicInfo(
            self.name,
            self.partitions,
            self.replication_factor,
            [Described.KeyValue(key, value) for key, value in self.configs.items()],
        )


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology; all topics are in the order of Kafka's tables."""

    number_of_tasks: int
    source_topics: Sequence[str]
    repartition_source_topics: Mapping[str, ConfiguredInternalTopic]
    repartition_sink_topics: Sequence[str]
    state_changelog_topics: Mapping[str, ConfiguredInternalTopic]

    def describe(self, subtopology_id: str) -> Described.Subtopology:
        """Return the subtopology as it is described."""
        return Described.Subtopology(
            subtopology_id,
            sorted(self.source_topics, key=text_order),
            sorted(self.repartition_sink_topics, key=text_order),
            _described(self.state_changelog_topics.values()),
            _described(self.repartition_source_topics.values()),
        )


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """The topology of an epoch, seen at the topics that have that metadata hash.

    `subtopologies` are in the order of their ids; None if an error prevents it.
    """

    topology_epoch: int
    metadata_hash: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    internal_topics_to_be_created: Mapping[str, CreateTopics.CreatableTopic]
    """By name, in the order of Kafka's table."""
    error: TopicConfigurationError | None

    @property
    def is_ready(self) -> bool:
        """Whether tasks may be assigned: all topics are there."""
        return self.error is None

    def tasks(self) -> TopologyDescriber:
        """Return what there is to assign; for a topology that is ready."""
        assert self.subtopologies is not None
        return {
            subtopology_id: SubtopologyTasks(subtopology.number_of_tasks, bool(subtopology.state_changelog_topics))
            for subtopology_id, subtopology in self.subtopologies.items()
        }

    def describe(self) -> Described.Topology:
        """Return the topology as it is described; for one that is ready."""
        assert self.subtopologies is not None
        return Described.Topology(
            self.topology_epoch,
            [subtopology.describe(subtopology_id) for subtopology_id, subtopology in self.subtopologies.items()],
        )


def _described(topics: Iterable[ConfiguredInternalTopic]) -> list[Described.TopicInfo]:
    return [topic.describe() for topic in sorted(topics, key=lambda topic: text_order(topic.name))]

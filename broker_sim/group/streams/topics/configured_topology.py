"""A topology as configured for the existing topics.

Mirrors `ConfiguredTopology`, `ConfiguredSubtopology`, `ConfiguredInternalTopic` and `TopologyMetadata`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.java_text import text_order
from broker_sim.group.streams.assignors.spec import SubtopologyTasks
from broker_sim.hash_order.hash_codes import integer_hash, string_hash
from broker_sim.hash_order.java_order import HashTable, copied_capacity, hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from broker_sim.group.streams.assignors.spec import TopologyDescriber
    from broker_sim.group.streams.tasks import Tasks
    from broker_sim.metadata import MetadataImage


class Status(IntEnum):
    """A status in a heartbeat response, besides errors; mirrors `StreamsGroupHeartbeatResponse.Status`."""

    STALE_TOPOLOGY = 0
    """The member's topology is older than the group's."""
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    """Copartitioned topics have different numbers of partitions."""
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    """A member has requested a shutdown of the application."""
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6
    """The member lacks a tag of `rack.aware.assignment.tags`."""


class TopicConfigurationError(Exception):
    """The existing topics do not fit the topology; mirrors `TopicConfigurationException`.

    No tasks are assigned until that is resolved. Members get `status` and the message.
    """

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


Described = messages.StreamsGroupDescribeResponse
CreateTopics = messages.CreateTopicsRequest

_DEFAULT_REPLICATION: Final = -1


class ConfiguredInternalTopic(NamedTuple):
    """The required configuration of a repartition or changelog topic; `replication_factor` 0 is the broker's default.

    `configs` are in the order of Kafka's table.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]

    def creatable(self) -> CreateTopics.CreatableTopic:
        """Return the topic for a CreateTopics request."""
        return CreateTopics.CreatableTopic(
            self.name,
            self.partitions,
            self.replication_factor or _DEFAULT_REPLICATION,
            configs=[CreateTopics.CreatableTopicConfig(key, value) for key, value in self.configs.items()],
        )

    def describe(self) -> Described.TopicInfo:
        """Return the topic for StreamsGroupDescribe."""
        return Described.TopicInfo(
            self.name,
            self.partitions,
            self.replication_factor,
            [Described.KeyValue(key, value) for key, value in self.configs.items()],
        )


class ConfiguredSubtopology(NamedTuple):
    """A subtopology; all topics are in the order of Kafka's tables."""

    number_of_tasks: int
    source_topics: Sequence[str]
    repartition_source_topics: Mapping[str, ConfiguredInternalTopic]
    repartition_sink_topics: Sequence[str]
    state_changelog_topics: Mapping[str, ConfiguredInternalTopic]

    def describe(self, subtopology_id: str) -> Described.Subtopology:
        """Return the subtopology for StreamsGroupDescribe."""
        return Described.Subtopology(
            subtopology_id,
            sorted(self.source_topics, key=text_order),
            sorted(self.repartition_sink_topics, key=text_order),
            _described(self.state_changelog_topics.values()),
            _described(self.repartition_source_topics.values()),
        )


class ConfiguredTopology(NamedTuple):
    """The topology of an epoch, as configured for topics with that metadata hash.

    `subtopologies` are sorted by id; None if an error prevents the configuration.
    """

    topology_epoch: int
    metadata_hash: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    internal_topics_to_be_created: Mapping[str, CreateTopics.CreatableTopic]
    """Missing internal topics by name, in the order of Kafka's table."""
    error: TopicConfigurationError | None

    @property
    def is_ready(self) -> bool:
        """Whether tasks may be assigned, because all topics exist and fit."""
        return self.error is None

    def tasks(self) -> TopologyDescriber:
        """Return the tasks to assign; the topology must be ready."""
        assert self.subtopologies is not None
        return {
            subtopology_id: SubtopologyTasks(subtopology.number_of_tasks, bool(subtopology.state_changelog_topics))
            for subtopology_id, subtopology in self.subtopologies.items()
        }

    def describe(self) -> Described.Topology:
        """Return the topology for StreamsGroupDescribe; it must be ready."""
        assert self.subtopologies is not None
        return Described.Topology(
            self.topology_epoch,
            [subtopology.describe(subtopology_id) for subtopology_id, subtopology in self.subtopologies.items()],
        )


def _described(topics: Iterable[ConfiguredInternalTopic]) -> list[Described.TopicInfo]:
    return [topic.describe() for topic in sorted(topics, key=lambda topic: text_order(topic.name))]


Response = messages.StreamsGroupHeartbeatResponse


def endpoint_to_partitions(
    endpoint: Response.Endpoint,
    active: Tasks,
    standby: Tasks,
    subtopologies: Mapping[str, ConfiguredSubtopology] | None,
    image: MetadataImage,
) -> Response.EndpointToPartitions:
    """Return the partitions that a member's endpoint serves; mirrors `EndpointToPartitionsManager`.

    An endpoint serves interactive queries on the state of the member's tasks. The result has the source partitions
    of these tasks.

    Deliberate difference: subtopologies and partitions are in the order that they have after a failover; Kafka's
    order of subtopologies with active tasks differs from run to run. As in Kafka, raises `ApiError`
    UNKNOWN_SERVER_ERROR if a subtopology is not configured or a topic does not exist.
    """
    if subtopologies is None:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Response.EndpointToPartitions(
        endpoint, list(_partitions(active, subtopologies, image)), list(_partitions(standby, subtopologies, image))
    )


def _partitions(
    tasks: Tasks, subtopologies: Mapping[str, ConfiguredSubtopology], image: MetadataImage
) -> Iterator[Response.TopicPartition]:
    for subtopology_id in hash_order(tasks, string_hash):
        subtopology = subtopologies.get(subtopology_id)
        if subtopology is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        numbers = sorted(tasks[subtopology_id])
        for name in _source_topics(subtopology):
            topic = image.topics.get(name)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            count = len(topic.partitions)
            # As in Kafka, the number of tasks decides whether a topic is too small for them.
            partition_numbers = numbers[:count] if count < len(numbers) else _in_table_order(numbers)
            yield Response.TopicPartition(name, partition_numbers)


def _source_topics(subtopology: ConfiguredSubtopology) -> list[str]:
    sources = subtopology.source_topics
    names: HashTable[str, None] = HashTable(string_hash, copied_capacity(len(sources)))
    for name in (*sources, *subtopology.repartition_source_topics):
        names.put(name, None)
    return names.in_order()


def _in_table_order(numbers: list[int]) -> list[int]:
    return hash_order(numbers, integer_hash, copied_capacity(len(numbers)))

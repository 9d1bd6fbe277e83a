"""Administrative requests whose responses a scenario observes.

Requests that only prepare a scenario are in `broker_sim_integration.clients.admin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply

__all__ = [
    "APPEND",
    "BROKER",
    "BROKER_LOGGER",
    "CLIENT_METRICS",
    "DELETE",
    "GROUP",
    "SET",
    "SUBTRACT",
    "TOPIC",
    "alter",
    "creatable",
    "create",
    "delete",
    "describe_configs",
    "enlarge",
    "metadata",
    "move",
    "ongoing",
    "pages",
]

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
TIMEOUT_MS = 15_000
FORBIDS_CREATION_VERSION = 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def creatable(
    name: str,
    partitions: int = -1,
    replication_factor: int = -1,
    *,
    assignments: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> messages.CreateTopicsRequest.CreatableTopic:
    """Return one topic of a CreateTopics request; -1 means the brokers' default."""
    request = messages.CreateTopicsRequest
    return request.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            request.CreatableReplicaAssignment(index, list(brokers)) for index, brokers in (assignments or {}).items()
        ],
        configs=[request.CreatableTopicConfig(*config) for config in (configs or {}).items()],
    )


def create(
    client: BrokerClient,
    *topics: messages.CreateTopicsRequest.CreatableTopic,
    validate_only: bool = False,
    version: int = 7,
) -> Reply[messages.CreateTopicsResponse]:
    """Create topics, or only validate the request; return the response."""
    request = messages.CreateTopicsRequest(topics=list(topics), timeout_ms=TIMEOUT_MS, validate_only=validate_only)
    return client.request(request, version, messages.CreateTopicsResponse)


def delete(
    client: BrokerClient, *topics: str | bytes | tuple[str, bytes] | None, version: int = 6
) -> Reply[messages.DeleteTopicsResponse]:
    """Delete topics by name, id, both or neither; before version 6 by name only."""
    request = messages.DeleteTopicsRequest(timeout_ms=TIMEOUT_MS)
    for topic in topics:
        match topic:
            case str() if version < 6:
                request.topic_names.append(topic)
            case (name, topic_id):
                request.topics.append(request.DeleteTopicState(name, topic_id))
            case bytes():
                request.topics.append(request.DeleteTopicState(None, topic))
            case _:
                request.topics.append(request.DeleteTopicState(topic, NO_TOPIC_ID))
    return client.request(request, version, messages.DeleteTopicsResponse)


def enlarge(
    client: BrokerClient,
    *topics: tuple[str, int, Sequence[Sequence[int]] | None],
    validate_only: bool = False,
    version: int = 3,
) -> Reply[messages.CreatePartitionsResponse]:
    """Send CreatePartitions: (topic, total number of partitions, replicas of each new one or None)."""
    request = messages.CreatePartitionsRequest(timeout_ms=TIMEOUT_MS, validate_only=validate_only)
    for name, count, assignments in topics:
        assigned = (
            None
            if assignments is None
            else [request.CreatePartitionsAssignment(list(brokers)) for brokers in assignments]
        )
        request.topics.append(request.CreatePartitionsTopic(name, count, assigned))
    return client.request(request, version, messages.CreatePartitionsResponse)


def metadata(
    client: BrokerClient,
    *topics: str | bytes | tuple[str, bytes],
    auto_create: bool = False,
    authorized: bool = False,
    version: int = 13,
) -> Reply[messages.MetadataResponse]:
    """Request metadata of topics by name, id or both; before version 4 topics are always auto-created."""
    request = messages.MetadataRequest(
        topics=[], allow_auto_topic_creation=auto_create or version < FORBIDS_CREATION_VERSION
    )
    if authorized:
        request.include_topic_authorized_operations = True
    for topic in topics:
        match topic:
            case (name, topic_id):
                wanted = request.MetadataRequestTopic(topic_id, name)
            case bytes():
                wanted = request.MetadataRequestTopic(topic, None)
            case _:
                wanted = request.MetadataRequestTopic(NO_TOPIC_ID, topic)
        assert request.topics is not None
        request.topics.append(wanted)
    return client.request(request, version, messages.MetadataResponse)


def describe_configs(
    client: BrokerClient,
    *resources: tuple[int, str, Sequence[str] | None],
    synonyms: bool = False,
    documentation: bool = False,
    version: int = 4,
) -> Reply[messages.DescribeConfigsResponse]:
    """Describe configurations: (resource type, name, keys or None for all)."""
    request = messages.DescribeConfigsRequest
    wanted = [
        request.DescribeConfigsResource(kind, name, None if keys is None else list(keys))
        for kind, name, keys in resources
    ]
    return client.request(
        request(wanted, include_synonyms=synonyms, include_documentation=documentation),
        version,
        messages.DescribeConfigsResponse,
    )


def alter(
    client: BrokerClient,
    *resources: tuple[int, str, Iterable[tuple[str, int, str | None]]],
    validate_only: bool = False,
    version: int = 1,
) -> Reply[messages.IncrementalAlterConfigsResponse]:
    """Change configurations: (resource type, name, changes: key, operation, value)."""
    request = messages.IncrementalAlterConfigsRequest
    wanted = [
        request.AlterConfigsResource(kind, name, [request.AlterableConfig(*change) for change in changes])
        for kind, name, changes in resources
    ]
    return client.request(request(wanted, validate_only), version, messages.IncrementalAlterConfigsResponse)


def pages(
    client: BrokerClient, names: Sequence[str], limit: int, cursor: tuple[str, int] | None = None
) -> Reply[messages.DescribeTopicPartitionsResponse]:
    """Request one page of the topics' partitions, starting at `cursor`."""
    request = messages.DescribeTopicPartitionsRequest
    wanted = request(
        topics=[request.TopicRequest(name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else request.Cursor(*cursor),
    )
    return client.request(wanted, 0, messages.DescribeTopicPartitionsResponse)


def move(
    client: BrokerClient, *partitions: tuple[str, int, Sequence[int] | None]
) -> Reply[messages.AlterPartitionReassignmentsResponse]:
    """Reassign partitions: (topic, partition, new replicas or None to cancel)."""
    request = messages.AlterPartitionReassignmentsRequest
    topics: dict[str, messages.AlterPartitionReassignmentsRequest.ReassignableTopic] = {}
    for name, index, brokers in partitions:
        topic = topics.setdefault(name, request.ReassignableTopic(name))
        wanted = None if brokers is None else list(brokers)
        topic.partitions.append(request.ReassignablePartition(index, wanted))
    return client.request(
        request(TIMEOUT_MS, topics=list(topics.values())), 0, messages.AlterPartitionReassignmentsResponse
    )


def ongoing(client: BrokerClient, topic: str) -> bool:
    """Whether the first partition of a topic is being reassigned."""
    request = messages.ListPartitionReassignmentsRequest
    wanted = request(TIMEOUT_MS, [request.ListPartitionReassignmentsTopics(topic, [0])])
    return bool(client.request(wanted, 0, messages.ListPartitionReassignmentsResponse).message.topics)

"""Requests that prepare a scenario: topics, configurations, metadata, elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim_integration.clients.topics import PartitionDescription, Topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim_integration.clients.raw_client import RawConnection, Reply

METADATA_VERSION = 12
CREATE_TOPICS_VERSION = 7
DELETE_TOPICS_VERSION = 6
ELECT_LEADERS_VERSION = 2
INCREMENTAL_ALTER_CONFIGS_VERSION = 1
DESCRIBE_QUORUM_VERSION = 1
ADMIN_TIMEOUT_MS = 15_000
TOPIC_RESOURCE = 2
SET, DELETE = 0, 1
PREFERRED_ELECTION = 0


class AdminError(RuntimeError):
    """A preparation of a scenario failed."""


def metadata(connection: RawConnection, topic: str | None) -> messages.MetadataResponse:
    """Return a broker's metadata of one topic; with None only the brokers."""
    request = messages.MetadataRequest
    topics = [] if topic is None else [request.MetadataRequestTopic(name=topic)]
    message = request(topics=topics, allow_auto_topic_creation=False)
    return connection.request(message, METADATA_VERSION, messages.MetadataResponse).message


def brokers_of(connection: RawConnection) -> dict[int, tuple[str, int]]:
    """Return the host and port of each broker in a broker's metadata, by broker id."""
    listed = metadata(connection, None).brokers
    return {broker.node_id: (broker.host, broker.port) for broker in listed}


def describe_partitions(connection: RawConnection, topic: str) -> dict[int, PartitionDescription]:
    """Return a broker's metadata of a topic's partitions, by index; empty if the topic is unknown to it."""
    (found,) = metadata(connection, topic).topics
    return {
        partition.partition_index: PartitionDescription(
            error_code=partition.error_code,
            leader=partition.leader_id,
            leader_epoch=partition.leader_epoch,
            replicas=tuple(partition.replica_nodes),
            isr=frozenset(partition.isr_nodes),
            offline=frozenset(partition.offline_replicas),
        )
        for partition in found.partitions
    }


def create_topic(
    connection: RawConnection, name: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, str]
) -> Topic:
    """Create a topic; `replicas` are the broker ids of each partition. Raise `AdminError` on an error."""
    request = messages.CreateTopicsRequest
    wanted = request.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            request.CreatableReplicaAssignment(index, list(brokers)) for index, brokers in enumerate(replicas)
        ],
        configs=[request.CreatableTopicConfig(key, value) for key, value in configs.items()],
    )
    reply = connection.request(
        request(topics=[wanted], timeout_ms=ADMIN_TIMEOUT_MS), CREATE_TOPICS_VERSION, messages.CreateTopicsResponse
    )
    (result,) = reply.message.topics
    _expect_none(f"create {name}", result.error_code, result.error_message)
    return Topic(name, bytes(result.topic_id), tuple(tuple(brokers) for brokers in replicas))


def delete_topic(connection: RawConnection, topic: Topic) -> None:
    """Delete a topic; no error if it does not exist."""
    request = messages.DeleteTopicsRequest
    connection.request(
        request(topics=[request.DeleteTopicState(name=None, topic_id=topic.topic_id)], timeout_ms=ADMIN_TIMEOUT_MS),
        DELETE_TOPICS_VERSION,
        messages.DeleteTopicsResponse,
    )


def alter_topic_configs(connection: RawConnection, topic: Topic, configs: Mapping[str, str | None]) -> None:
    """Set configurations of a topic; None resets to the default. Raise `AdminError` on an error."""
    request = messages.IncrementalAlterConfigsRequest
    changes = [request.AlterableConfig(key, DELETE if value is None else SET, value) for key, value in configs.items()]
    reply = connection.request(
        request(resources=[request.AlterConfigsResource(TOPIC_RESOURCE, topic.name, changes)]),
        INCREMENTAL_ALTER_CONFIGS_VERSION,
        messages.IncrementalAlterConfigsResponse,
    )
    (result,) = reply.message.responses
    _expect_none(f"configure {topic.name}", result.error_code, result.error_message)


def elect_leader(
    connection: RawConnection,
    topic: Topic,
    *,
    partition: int = 0,
    election_type: int = PREFERRED_ELECTION,
    timeout_ms: int = ADMIN_TIMEOUT_MS,
) -> Reply[messages.ElectLeadersResponse]:
    """Request an election of one partition's leader; return the response."""
    request = messages.ElectLeadersRequest
    wanted = request.TopicPartitions(topic.name, [partition])
    return connection.request(
        request(election_type, [wanted], timeout_ms), ELECT_LEADERS_VERSION, messages.ElectLeadersResponse
    )


def quorum_leader(connection: RawConnection) -> int:
    """Return the node id of the active controller."""
    request: Any = messages.DescribeQuorumRequest
    wanted = request.TopicData("__cluster_metadata", [request.PartitionData(0)])
    reply = connection.request(request(topics=[wanted]), DESCRIBE_QUORUM_VERSION, messages.DescribeQuorumResponse)
    return reply.message.topics[0].partitions[0].leader_id


def _expect_none(what: str, error_code: int, text: str | None) -> None:
    if error_code != ErrorCode.NONE:
        raise AdminError(f"{what}: {ErrorCode(error_code).name}: {text}")

"""A small request of each served API in any version, for the sweep over all versions.

Each request is harmless: it reads, creates something new, or requests the state that already holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim_integration.clients.broker_client import EARLIEST, Position, fetch_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.protocol.message import Message
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

TIMEOUT_MS = 15_000
TOPIC_RESOURCE, SET = 2, 0
PREFERRED = 0
DELETES_BY_ID, FORBIDS_CREATION = 6, 4


class Subject(NamedTuple):
    """The subject of a request: a topic with records, and the suffix of a topic name that does not exist yet."""

    cluster: ClusterUnderTest
    topic: Topic
    suffix: str

    @property
    def name(self) -> str:
        """The name of a topic that does not exist yet."""
        return self.cluster.topics.name(self.suffix)


class Api(NamedTuple):
    """A function that makes a request of an API, and the type of the response."""

    request_of: Callable[[Subject, int], Message]
    response: type[Message]


def _fetch(subject: Subject, version: int) -> Message:
    return fetch_request([Position(subject.topic)], version=version)


def _list_offsets(subject: Subject, _version: int) -> Message:
    request = messages.ListOffsetsRequest
    partition = request.ListOffsetsPartition(timestamp=EARLIEST)
    return request(replica_id=-1, topics=[request.ListOffsetsTopic(subject.topic.name, [partition])])


def _offset_for_leader_epoch(subject: Subject, _version: int) -> Message:
    request = messages.OffsetForLeaderEpochRequest
    partition = request.OffsetForLeaderPartition(leader_epoch=0)
    topics = [request.OffsetForLeaderTopic(subject.topic.name, [partition])]
    return request(replica_id=-1, topics=topics)


def _delete_records(subject: Subject, version: int) -> Message:
    request = messages.DeleteRecordsRequest
    partition = request.DeleteRecordsPartition(offset=version + 1)
    return request([request.DeleteRecordsTopic(subject.topic.name, [partition])], TIMEOUT_MS)


def _metadata(subject: Subject, version: int) -> Message:
    wanted = messages.MetadataRequest.MetadataRequestTopic(NO_TOPIC_ID, subject.topic.name)
    return messages.MetadataRequest([wanted], version < FORBIDS_CREATION)


def _create_topics(subject: Subject, _version: int) -> Message:
    request = messages.CreateTopicsRequest
    return request([request.CreatableTopic(subject.name, num_partitions=2, replication_factor=1)], TIMEOUT_MS)


def _create_partitions(subject: Subject, version: int) -> Message:
    request = messages.CreatePartitionsRequest
    wanted = request.CreatePartitionsTopic(subject.topic.name, version + 2, None)
    return request([wanted], TIMEOUT_MS)


def _describe_topic_partitions(subject: Subject, _version: int) -> Message:
    request = messages.DescribeTopicPartitionsRequest
    return request([request.TopicRequest(subject.topic.name)], 1)


def _elect_leaders(subject: Subject, _version: int) -> Message:
    request = messages.ElectLeadersRequest
    return request(PREFERRED, [request.TopicPartitions(subject.topic.name, [0])], TIMEOUT_MS)


def _alter_reassignments(subject: Subject, _version: int) -> Message:
    request = messages.AlterPartitionReassignmentsRequest
    partition = request.ReassignablePartition(0, [subject.cluster.first])
    return request(TIMEOUT_MS, topics=[request.ReassignableTopic(subject.topic.name, [partition])])


def _list_reassignments(subject: Subject, _version: int) -> Message:
    request = messages.ListPartitionReassignmentsRequest
    wanted = request.ListPartitionReassignmentsTopics(subject.topic.name, [0])
    return request(TIMEOUT_MS, [wanted])


def _delete_topics(subject: Subject, version: int) -> Message:
    request = messages.DeleteTopicsRequest
    if version < DELETES_BY_ID:
        return request(topic_names=[subject.name], timeout_ms=TIMEOUT_MS)
    return request([request.DeleteTopicState(subject.name, NO_TOPIC_ID)], timeout_ms=TIMEOUT_MS)


def _describe_configs(subject: Subject, _version: int) -> Message:
    request = messages.DescribeConfigsRequest
    name = subject.topic.name
    return request([request.DescribeConfigsResource(TOPIC_RESOURCE, name, ["segment.bytes"])])


def _alter_configs(subject: Subject, _version: int) -> Message:
    request = messages.AlterConfigsRequest
    changes = [request.AlterableConfig("segment.bytes", "2000000")]
    return request([request.AlterConfigsResource(TOPIC_RESOURCE, subject.topic.name, changes)])


def _incremental_alter_configs(subject: Subject, _version: int) -> Message:
    request = messages.IncrementalAlterConfigsRequest
    changes = [request.AlterableConfig("segment.bytes", SET, "3000000")]
    return request([request.AlterConfigsResource(TOPIC_RESOURCE, subject.topic.name, changes)])


def _describe_cluster(_subject: Subject, _version: int) -> Message:
    return messages.DescribeClusterRequest()


def _init_producer_id(_subject: Subject, _version: int) -> Message:
    return messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS)


REQUESTS: Final[Mapping[ApiKey, Api]] = {
    ApiKey.FETCH: Api(_fetch, messages.FetchResponse),
    ApiKey.LIST_OFFSETS: Api(_list_offsets, messages.ListOffsetsResponse),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(_offset_for_leader_epoch, messages.OffsetForLeaderEpochResponse),
    ApiKey.DELETE_RECORDS: Api(_delete_records, messages.DeleteRecordsResponse),
    ApiKey.METADATA: Api(_metadata, messages.MetadataResponse),
    ApiKey.CREATE_TOPICS: Api(_create_topics, messages.CreateTopicsResponse),
    ApiKey.CREATE_PARTITIONS: Api(_create_partitions, messages.CreatePartitionsResponse),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Api(_describe_topic_partitions, messages.DescribeTopicPartitionsResponse),
    ApiKey.ELECT_LEADERS: Api(_elect_leaders, messages.ElectLeadersResponse),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Api(_alter_reassignments, messages.AlterPartitionReassignmentsResponse),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Api(_list_reassignments, messages.ListPartitionReassignmentsResponse),
    ApiKey.DELETE_TOPICS: Api(_delete_topics, messages.DeleteTopicsResponse),
    ApiKey.DESCRIBE_CONFIGS: Api(_describe_configs, messages.DescribeConfigsResponse),
    ApiKey.ALTER_CONFIGS: Api(_alter_configs, messages.AlterConfigsResponse),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(_incremental_alter_configs, messages.IncrementalAlterConfigsResponse),
    ApiKey.DESCRIBE_CLUSTER: Api(_describe_cluster, messages.DescribeClusterResponse),
    ApiKey.INIT_PRODUCER_ID: Api(_init_producer_id, messages.InitProducerIdResponse),
}

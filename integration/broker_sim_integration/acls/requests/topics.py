"""Requests about topics and partitions."""

from __future__ import annotations

from broker_sim.protocol import messages
from broker_sim_integration.acls.names import CLUSTER_RESOURCE, NEW_RESOURCE, NEW_TOPIC, TOPIC, TOPIC_RESOURCE
from broker_sim_integration.acls.situation import GuardedRequest, by_id, fixed


def topics_requests() -> list[GuardedRequest]:
    """Return the requests with the resources on which they need rights."""
    metadata = messages.MetadataRequest
    topic = metadata.MetadataRequestTopic
    create, more = messages.CreateTopicsRequest, messages.CreatePartitionsRequest
    described = messages.DescribeTopicPartitionsRequest
    creation = create([create.CreatableTopic(NEW_TOPIC, 1, 1)], 1_000, validate_only=True)
    asks = {"include_topic_authorized_operations": True}
    return [
        fixed("Metadata", metadata([topic(name=TOPIC)], False, **asks), 9, TOPIC_RESOURCE),
        fixed("Metadata of all topics", metadata(None, False, **asks), 12, TOPIC_RESOURCE),
        by_id("Metadata by id", lambda topic_id: metadata([topic(topic_id, None)], False, **asks), 12, TOPIC_RESOURCE),
        fixed("Metadata of an unknown topic", metadata([topic(name=NEW_TOPIC)], False), 9, NEW_RESOURCE),
        fixed(
            "Metadata of the cluster",
            metadata([], False, include_cluster_authorized_operations=True),
            8,
            CLUSTER_RESOURCE,
        ),
        fixed("DescribeTopicPartitions", described([described.TopicRequest(TOPIC)]), 0, TOPIC_RESOURCE),
        fixed("DescribeTopicPartitions of all topics", described([]), 0, TOPIC_RESOURCE),
        fixed("CreateTopics", creation, 7, NEW_RESOURCE),
        fixed("CreateTopics in the cluster", creation, 7, CLUSTER_RESOURCE),
        fixed(
            "CreatePartitions",
            more([more.CreatePartitionsTopic(TOPIC, 2)], 1_000, validate_only=True),
            3,
            TOPIC_RESOURCE,
        ),
        fixed(
            "DeleteTopics",
            messages.DeleteTopicsRequest([messages.DeleteTopicsRequest.DeleteTopicState(NEW_TOPIC)], timeout_ms=1_000),
            6,
            NEW_RESOURCE,
        ),
        fixed(
            "DeleteTopics in the cluster",
            messages.DeleteTopicsRequest([messages.DeleteTopicsRequest.DeleteTopicState(NEW_TOPIC)], timeout_ms=1_000),
            6,
            CLUSTER_RESOURCE,
        ),
    ]

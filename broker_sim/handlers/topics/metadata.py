"""Metadata (key 3), versions 0-13; mirrors ``KafkaApis.handleTopicMetadataRequest``.

Version notes: 4 can forbid auto-creation, 5 lists offline replicas, 7 leader epochs, 10 topic ids,
12 looks topics up by id.

An unknown topic that may be created is asked of the controller and answered with
UNKNOWN_TOPIC_OR_PARTITION; the client asks again, as with Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorized_operations import (
    ALL_CLUSTER_OPERATIONS,
    ALL_TOPIC_OPERATIONS,
)
from broker_sim.handlers.support.auto_topic_creation import creatable_topic
from broker_sim.metadata.topic_name import invalid_topic_name, is_internal_topic
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import BrokerServices, RequestContext
    from broker_sim.metadata import MetadataImage, PartitionState, TopicState

__all__ = ["handle_metadata", "offline_replicas"]

NO_TOPIC_ID = bytes(16)
Topic = messages.MetadataResponse.MetadataResponseTopic


def handle_metadata(
    request: messages.MetadataRequest,
    context: RequestContext,
    respond: Callable[[messages.MetadataResponse], None],
) -> None:
    """Describe the living brokers and the topics asked for (None: all of them)."""
    if any(topic.name is None and topic.topic_id == NO_TOPIC_ID for topic in request.topics or ()):
        respond(_failed(request))
        return
    image = context.broker.image
    brokers = image.alive_brokers()
    everything = request.topics is None or (context.api_version == 0 and not request.topics)
    if everything:
        topics = [_describe(image, topic, context.api_version) for topic in image.topics.values()]
    else:
        topics = _named_topics(context.broker, request, context.api_version)
    response = messages.MetadataResponse(
        brokers=[
            messages.MetadataResponse.MetadataResponseBroker(
                node_id=broker.broker_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in brokers
        ],
        cluster_id=image.cluster_id,
        controller_id=context.broker.random.choice(brokers).broker_id if brokers else -1,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = ALL_TOPIC_OPERATIONS
    respond(response)


def _failed(request: messages.MetadataRequest) -> messages.MetadataResponse:
    """Return what answers a topic with neither name nor id: nothing is known of any topic."""
    return messages.MetadataResponse(
        error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
        topics=[
            Topic(ErrorCode.UNKNOWN_SERVER_ERROR, topic.name or "", topic.topic_id)
            for topic in request.topics or ()
        ],
    )


def _named_topics(
    broker: BrokerServices, request: messages.MetadataRequest, version: int
) -> list[Topic]:
    """Describe what is asked for, each topic once; one id makes all that have none be ignored."""
    asked = request.topics or ()
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != NO_TOPIC_ID)
    if ids:
        return [_by_id(broker.image, topic_id, version) for topic_id in ids]
    topics: list[Topic] = []
    missing: list[str] = []
    for name in dict.fromkeys(topic.name or "" for topic in asked):
        state = broker.image.topics.get(name)
        if state is not None:
            topics.append(_describe(broker.image, state, version))
            continue
        error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
        if invalid_topic_name(name) is None:
            error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            missing.append(name)
        topics.append(Topic(error_code, name, NO_TOPIC_ID, is_internal_topic(name)))
    if missing and request.allow_auto_topic_creation and broker.config.auto_create_topics_enable:
        _auto_create(broker, missing)
    return topics


def _by_id(image: MetadataImage, topic_id: bytes, version: int) -> Topic:
    state = image.topic_by_id(topic_id)
    if state is None:
        return Topic(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    return _describe(image, state, version)


def _auto_create(broker: BrokerServices, names: list[str]) -> None:
    wanted = [creatable_topic(name, broker.config) for name in names]
    broker.controller.call(
        lambda controller: controller.create_topics(wanted, validate_only=False), lambda _: None
    )


def _describe(image: MetadataImage, topic: TopicState, version: int) -> Topic:
    partitions = [
        _partition(image, number, state, version) for number, state in enumerate(topic.partitions)
    ]
    return Topic(
        ErrorCode.NONE, topic.name, topic.topic_id, is_internal_topic(topic.name), partitions
    )


def _partition(
    image: MetadataImage, number: int, state: PartitionState, version: int
) -> messages.MetadataResponse.MetadataResponsePartition:
    leader = image.alive_broker(state.leader)
    error_code = ErrorCode.NONE if leader else ErrorCode.LEADER_NOT_AVAILABLE
    replicas, isr = list(state.replicas), list(state.isr)
    if version == 0:
        # Clients of version 0 look every node up in the list of brokers, so the others are left out.
        replicas = [node for node in replicas if image.alive_broker(node)]
        isr = [node for node in isr if image.alive_broker(node)]
        if leader and (len(replicas) < len(state.replicas) or len(isr) < len(state.isr)):
            error_code = ErrorCode.REPLICA_NOT_AVAILABLE
    return messages.MetadataResponse.MetadataResponsePartition(
        error_code,
        number,
        leader.broker_id if leader else -1,
        state.leader_epoch,
        replicas,
        isr,
        offline_replicas(image, state),
    )


def offline_replicas(image: MetadataImage, state: PartitionState) -> list[int]:
    """Return the replicas whose brokers are fenced or gone."""
    return [replica for replica in state.replicas if image.alive_broker(replica) is None]

"""Metadata (key 3), versions 0-13; mirrors `KafkaApis.handleTopicMetadataRequest`.

Behaviour:
* lists the live brokers that have the client's listener, with its addresses, and the requested topics: by
  name, by id, or all
* an unknown topic that may be auto-created is created at the controller and answered with
  UNKNOWN_TOPIC_OR_PARTITION, which the client retries
* the controller id is that of any live broker, because clients cannot reach KRaft controllers

Version notes: 4 can forbid auto-creation, 5 lists offline replicas, 6 has LISTENER_NOT_FOUND for a leader
without the client's listener, 7 leader epochs, 10 topic ids, 12 can look up topics by id, 13 has an error
for the whole request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import whole_answer
from broker_sim.handlers.support.authorization import (
    authorized_operations,
    cluster_operations,
    is_authorized,
    unauthorized_names,
)
from broker_sim.handlers.support.auto_topic_creation import creatable_topic
from broker_sim.handlers.support.forwarding import mutation_quota
from broker_sim.handlers.support.partition_errors import injected_error
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.metadata.topic_name import invalid_topic_name, is_internal_topic
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata import MetadataImage, PartitionState, TopicState

LISTENER_ERROR_VERSION: Final = 6
DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
WITHOUT_OPERATIONS: Final = (ErrorCode.UNKNOWN_TOPIC_ID, DENIED)

Topic = messages.MetadataResponse.MetadataResponseTopic


def handle_metadata(
    request: messages.MetadataRequest, context: RequestContext, respond: Callable[[messages.MetadataResponse], None]
) -> None:
    """Describe the live brokers and the requested topics, or all topics if the list is None."""
    if any(topic.name is None and topic.topic_id == NO_TOPIC_ID for topic in request.topics or ()):
        respond(whole_answer(context.api_key, request, context.api_version, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    image = context.broker.image
    alive = image.alive_brokers()
    everything = request.topics is None or (context.api_version == 0 and not request.topics)
    if everything:
        denied = _denied(context, image.topics, is_asked=False)
        topics = [_describe(context, image, topic) for name, topic in image.topics.items() if name not in denied]
    else:
        topics = _named_topics(request, context)
    response = messages.MetadataResponse(
        brokers=[
            messages.MetadataResponse.MetadataResponseBroker(
                broker.broker_id, endpoint.host, endpoint.port, broker.rack
            )
            for broker, endpoint in image.alive_endpoints(context.listener)
        ],
        cluster_id=image.cluster_id,
        controller_id=context.broker.random.choice(alive).broker_id if alive else -1,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    if request.include_topic_authorized_operations:
        for topic in topics:
            # An unknown id is reported before permissions are checked.
            if topic.error_code not in WITHOUT_OPERATIONS:
                topic.topic_authorized_operations = authorized_operations(context, ResourceType.TOPIC, topic.name or "")
    respond(response)


def _named_topics(request: messages.MetadataRequest, context: RequestContext) -> list[Topic]:
    """Describe each requested topic once; if any has an id, topics with only a name are ignored."""
    broker = context.broker
    image = broker.image
    requested_topics = request.topics or ()
    ids = dict.fromkeys(topic.topic_id for topic in requested_topics if topic.topic_id != NO_TOPIC_ID)
    if ids:
        existing_names = [image.topic_names[topic_id] for topic_id in ids if topic_id in image.topic_names]
        denied = _denied(context, existing_names)
        return [_by_id(context, image, topic_id, denied) for topic_id in ids]
    names = list(dict.fromkeys(topic.name or "" for topic in requested_topics))
    denied = _denied(context, names)
    creates = request.allow_auto_topic_creation and broker.config.auto_create_topics_enable
    missing = [name for name in names if name not in denied and name not in image.topics]
    may_not_create = _denied_creations(context, missing) if creates and missing else frozenset()
    topics: list[Topic] = []
    missing = []
    for name in names:
        if name in denied:
            topics.append(Topic(DENIED, name, NO_TOPIC_ID))
            continue
        if name in may_not_create:
            topics.append(Topic(DENIED, name, NO_TOPIC_ID, is_internal_topic(name)))
            continue
        state = image.topics.get(name)
        if state is not None:
            topics.append(_describe(context, image, state))
            continue
        error_code = injected_error(context, name)
        if not error_code:
            error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
            if invalid_topic_name(name) is None:
                error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                missing.append(name)
        topics.append(Topic(error_code, name, NO_TOPIC_ID, is_internal_topic(name)))
    if missing and creates:
        _auto_create(context, missing)
    return topics


def _denied(context: RequestContext, names: Iterable[str], *, is_asked: bool = True) -> AbstractSet[str]:
    """Return the topics that the client may not describe; it does not learn whether they exist."""
    describe = AclOperation.DESCRIBE
    return unauthorized_names(context, describe, ResourceType.TOPIC, names, logs_denial=is_asked)


def _denied_creations(context: RequestContext, names: Iterable[str]) -> AbstractSet[str]:
    """Return the topics that do not exist and that the client may not create."""
    create, cluster = AclOperation.CREATE, ResourceType.CLUSTER
    if is_authorized(context, create, cluster, CLUSTER_NAME, logs_denial=False):
        return frozenset()
    return unauthorized_names(context, create, ResourceType.TOPIC, names)


def _by_id(context: RequestContext, image: MetadataImage, topic_id: bytes, denied: AbstractSet[str]) -> Topic:
    state = image.topic_by_id(topic_id)
    if state is None:
        error_code = injected_error(context, "") or ErrorCode.UNKNOWN_TOPIC_ID
        return Topic(error_code, None, topic_id)
    if state.name in denied:
        return Topic(DENIED, None, topic_id)
    return _describe(context, image, state)


def _auto_create(context: RequestContext, names: list[str]) -> None:
    """Create the topics like the client's own CreateTopics request; above its quota nothing is created."""
    broker = context.broker
    topics = [creatable_topic(name, broker.config) for name in names]
    quota = mutation_quota(context, strict_since_version=0)
    broker.controller.call(
        lambda controller: controller.create_topics(topics, charge=quota.record), lambda _: None, lambda _: None
    )


def _describe(context: RequestContext, image: MetadataImage, topic: TopicState) -> Topic:
    is_internal = is_internal_topic(topic.name)
    error_code = injected_error(context, topic.name)
    if error_code:
        return Topic(error_code, topic.name, topic.topic_id, is_internal)
    partitions = [_partition(image, number, state, context) for number, state in enumerate(topic.partitions)]
    return Topic(ErrorCode.NONE, topic.name, topic.topic_id, is_internal, partitions)


def _partition(
    image: MetadataImage, number: int, state: PartitionState, context: RequestContext
) -> messages.MetadataResponse.MetadataResponsePartition:
    listener, version = context.listener, context.api_version
    leader = image.alive_broker(state.leader)
    error_code = ErrorCode.NONE if leader else ErrorCode.LEADER_NOT_AVAILABLE
    if leader and leader.endpoint(listener) is None:
        leader = None
        if version >= LISTENER_ERROR_VERSION:
            error_code = ErrorCode.LISTENER_NOT_FOUND
        else:
            error_code = ErrorCode.LEADER_NOT_AVAILABLE
    replicas, isr = list(state.replicas), list(state.isr)
    if version == 0:
        # A client of version 0 looks up every node in the list of brokers, so other nodes are left out.
        replicas = [node for node in replicas if image.alive_endpoint(node, listener)]
        isr = [node for node in isr if image.alive_endpoint(node, listener)]
        if leader and (len(replicas) < len(state.replicas) or len(isr) < len(state.isr)):
            error_code = ErrorCode.REPLICA_NOT_AVAILABLE
    return messages.MetadataResponse.MetadataResponsePartition(
        error_code,
        number,
        leader.broker_id if leader else -1,
        state.leader_epoch,
        replicas,
        isr,
        offline_replicas(image, state, listener),
    )


def offline_replicas(image: MetadataImage, state: PartitionState, listener: str) -> list[int]:
    """Return the replicas whose brokers are fenced, not registered, or without that listener."""
    return [replica for replica in state.replicas if image.alive_endpoint(replica, listener) is None]

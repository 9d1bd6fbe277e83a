"""FindCoordinator (key 10), versions 0-6; mirrors `KafkaApis.handleFindCoordinatorRequest`.

Behaviour:
* the coordinator of a group is the leader of the group's partition of `__consumer_offsets`, that of a
  transactional id the leader of the id's partition of `__transaction_state`
* a missing topic is created at the controller, and the answer is COORDINATOR_NOT_AVAILABLE until its
  partition has a leader with the client's listener; if there are too few brokers for its replication
  factor it stays so, with a warning in the log
* the coordinator of a share partition is the leader of its partition of `__share_group_state`; this needs
  CLUSTER_ACTION, and a key other than `groupId:topicId:partition` is INVALID_REQUEST

Version notes: 1 adds transactional ids, 4 several keys, 6 share partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.support.authorization import authorization_error, is_authorized
from broker_sim.handlers.support.auto_topic_creation import create_coordinators_topic
from broker_sim.metadata import NO_LEADER
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.special_values import NO_NODE
from broker_sim.share.share_state import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

KEYS_VERSION: Final = 4
SHARE_VERSION: Final = 6
GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
MESSAGES: Final = {ErrorCode.NONE: "NONE", **ERROR_TEXTS}
"""Kafka's error messages; before version 4 there is one for NONE, too."""

_PROTECTED: Final = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}

Coordinator = messages.FindCoordinatorResponse.Coordinator


def handle_find_coordinator(
    request: messages.FindCoordinatorRequest,
    context: RequestContext,
    respond: Callable[[messages.FindCoordinatorResponse], None],
) -> None:
    """Return the coordinator of each key."""
    by_keys = context.api_version >= KEYS_VERSION
    keys = request.coordinator_keys if by_keys else [request.key]
    if request.key_type == SHARE and _is_hidden(context):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        text = ERROR_TEXTS[code]
        coordinators = [Coordinator(key, NO_NODE, "", NO_NODE, code, text) for key in keys]
    else:
        coordinators = [_coordinator(key, request.key_type, context) for key in keys]
    if by_keys:
        respond(messages.FindCoordinatorResponse(coordinators=coordinators))
        return
    (coordinator,) = coordinators
    respond(
        messages.FindCoordinatorResponse(
            error_code=coordinator.error_code,
            error_message=MESSAGES[ErrorCode(coordinator.error_code)],
            node_id=coordinator.node_id,
            host=coordinator.host,
            port=coordinator.port,
        )
    )


def _is_hidden(context: RequestContext) -> bool:
    """Whether the client may not look up coordinators of share partitions."""
    return context.api_version >= SHARE_VERSION and not is_authorized(
        context, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
    )


def _coordinator(key: str, key_type: int, context: RequestContext) -> Coordinator:
    protected = _PROTECTED.get(key_type)
    if protected is not None:
        denial = authorization_error(context, AclOperation.DESCRIBE, protected, key)
        if denial:
            return Coordinator(key, NO_NODE, "", NO_NODE, denial)
    partition = _partition(key, key_type, context)
    if partition is not None:
        return _answer(key, partition, context)
    code = ErrorCode.INVALID_REQUEST
    text = "" if key_type == SHARE else ERROR_TEXTS[code]
    return Coordinator(key, NO_NODE, "", NO_NODE, code, text)


def _partition(key: str, key_type: int, context: RequestContext) -> TopicPartition | None:
    """Return the partition whose leader is the coordinator, None for an invalid key."""
    broker = context.broker
    if key_type == GROUP:
        return TopicPartition(GROUP_METADATA_TOPIC, broker.groups.partition_for(key))
    if key_type == TRANSACTION:
        number = broker.transactions.states.partition_for(key)
        return TopicPartition(TRANSACTION_STATE_TOPIC, number)
    if key_type == SHARE and context.api_version >= SHARE_VERSION:
        try:
            share_partition = SharePartitionKey.of_coordinator_key(key)
        except ValueError:
            return None
        number = broker.share_coordinator.partition_for(share_partition.coordinator_key())
        return TopicPartition(SHARE_GROUP_STATE_TOPIC, number)
    return None


def _answer(key: str, partition: TopicPartition, context: RequestContext) -> Coordinator:
    """Return the live leader of the partition, or COORDINATOR_NOT_AVAILABLE, which the client retries."""
    image = context.broker.image
    if partition.topic not in image.topics:
        create_coordinators_topic(partition.topic, context.broker)
    state = image.partition(partition)
    leader = NO_LEADER if state is None else state.leader
    endpoint = image.alive_endpoint(leader, context.listener)
    if endpoint is None:
        return Coordinator(key, NO_NODE, "", NO_NODE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key, leader, endpoint.host, endpoint.port)

"""FindCoordinator (key 10), versions 0-6; mirrors `KafkaApis.handleFindCoordinatorRequest`.

Behaviour:
* the coordinator of a group is the leader of the group's partition of `__consumer_offsets`, that of a
  transactional id the leader of the id's partition of `__transaction_state`
* without such a topic the controller is asked to create it, and the answer is COORDINATOR_NOT_AVAILABLE
  until the topic has a leader there that the client's listener has; where its replication factor does not fit, for ever, with a
  warning in the log
* share groups are not served: INVALID_REQUEST, as from a broker without them

Version notes: 1 asks for transactional ids too, 4 for several keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import AUTHORIZATION_TEXTS, authorization_error
from broker_sim.handlers.support.auto_topic_creation import creatable_topic
from broker_sim.handlers.support.forwarding import forward
from broker_sim.metadata import NO_LEADER
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.controller import Outcome
    from broker_sim.handlers.context import BrokerServices, RequestContext

__all__ = ["handle_find_coordinator"]

log = get_logger(__name__)

KEYS_VERSION: Final = 4
GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
CREATE_TIMEOUT_MS: Final = 30_000
NO_NODE: Final = -1
INVALID_REQUEST_TEXT: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message"
    " was sent to an incompatible broker. See the broker logs for more details."
)
MESSAGES: Final = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: INVALID_REQUEST_TEXT,
    **AUTHORIZATION_TEXTS,
}
"""What Kafka says with an error; before version 4 also without one."""

_PROTECTED: Final = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}

Coordinator = messages.FindCoordinatorResponse.Coordinator


def handle_find_coordinator(
    request: messages.FindCoordinatorRequest,
    context: RequestContext,
    respond: Callable[[messages.FindCoordinatorResponse], None],
) -> None:
    """Name the coordinator of each key."""
    by_keys = context.api_version >= KEYS_VERSION
    keys = request.coordinator_keys if by_keys else [request.key]
    coordinators = [_coordinator(key, request.key_type, context) for key in keys]
    if by_keys:
        respond(messages.FindCoordinatorResponse(coordinators=coordinators))
        return
    (found,) = coordinators
    respond(
        messages.FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=MESSAGES[ErrorCode(found.error_code)],
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    )


def _coordinator(key: str, key_type: int, context: RequestContext) -> Coordinator:
    broker = context.broker
    protected = _PROTECTED.get(key_type)
    if protected is not None:
        denial = authorization_error(context, AclOperation.DESCRIBE, protected, key)
        if denial:
            return Coordinator(key, NO_NODE, "", NO_NODE, denial)
    if key_type == GROUP:
        partition = TopicPartition(GROUP_METADATA_TOPIC, broker.groups.partition_for(key))
        return _answer(key, partition, context)
    if key_type == TRANSACTION:
        number = broker.transactions.states.partition_for(key)
        partition = TopicPartition(TRANSACTION_STATE_TOPIC, number)
        return _answer(key, partition, context)
    text = "" if key_type == SHARE else INVALID_REQUEST_TEXT
    return Coordinator(key, NO_NODE, "", NO_NODE, ErrorCode.INVALID_REQUEST, text)


def _answer(key: str, partition: TopicPartition, context: RequestContext) -> Coordinator:
    """Return the living leader of the partition, or the answer that asks the client to come again."""
    image = context.broker.image
    if partition.topic not in image.topics:
        _create_topic(partition.topic, context.broker)
    state = image.partition(partition)
    leader = NO_LEADER if state is None else state.leader
    endpoint = image.alive_endpoint(leader, context.listener)
    if endpoint is None:
        return Coordinator(key, NO_NODE, "", NO_NODE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key, leader, endpoint.host, endpoint.port)


def _create_topic(name: str, broker: BrokerServices) -> None:
    """Ask the controller for the topic, and warn if it refuses: clients only see that they wait."""
    wanted = creatable_topic(name, broker.config)

    def tell(outcome: Outcome) -> None:
        if outcome.ok or outcome.error_code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return
        log.bind(broker.clock, node=f"broker-{broker.broker_id}").warning(
            "topic_not_created",
            topic=wanted.name,
            error=outcome.error_code.name,
            reason=outcome.error_message,
        )

    forward(
        broker,
        CREATE_TIMEOUT_MS,
        lambda controller: controller.create_topics([wanted], validate_only=False),
        lambda results: tell(results[0].outcome),
        tell,
    )

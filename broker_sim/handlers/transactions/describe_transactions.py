"""DescribeTransactions (key 65), version 0; mirrors `TransactionCoordinator.handleDescribeTransactions`.

Behaviour: each id succeeds or fails alone; TRANSACTIONAL_ID_NOT_FOUND for an id that the coordinator does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.authorization import authorization_error, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_partition import by_topic
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext
    from broker_sim.transaction.coordinator import TransactionCoordinator

State = messages.DescribeTransactionsResponse.TransactionState
TopicData = messages.DescribeTransactionsResponse.TopicData


def handle_describe_transactions(
    request: messages.DescribeTransactionsRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeTransactionsResponse], None],
) -> None:
    """Describe the requested transactional ids."""
    states = [_describe_visible(name, context) for name in request.transactional_ids]
    respond(messages.DescribeTransactionsResponse(transaction_states=states))


def _describe_visible(
    transactional_id: str, context: RequestContext
) -> messages.DescribeTransactionsResponse.TransactionState:
    """Describe an id that the client may describe, without topics that it may not describe."""
    describe = AclOperation.DESCRIBE
    denial = authorization_error(context, describe, ResourceType.TRANSACTIONAL_ID, transactional_id)
    if denial:
        return State(denial, transactional_id)
    state = _describe(transactional_id, context.broker.transactions)
    names = (topic.topic for topic in state.topics)
    hidden = unauthorized_names(context, describe, ResourceType.TOPIC, names)
    state.topics = [topic for topic in state.topics if topic.topic not in hidden]
    return state


def _describe(
    transactional_id: str, coordinator: TransactionCoordinator
) -> messages.DescribeTransactionsResponse.TransactionState:
    if not transactional_id:
        return State(ErrorCode.INVALID_REQUEST)
    try:
        partition = coordinator.states.partition_of(transactional_id)
    except ApiError as error:
        return State(error.error_code, transactional_id)
    metadata = partition.transactions.get(transactional_id)
    if metadata is None:
        return State(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    values = metadata.values
    return State(
        transactional_id=transactional_id,
        transaction_state=values.state.state_name,
        transaction_timeout_ms=values.timeout_ms,
        transaction_start_time_ms=values.start_ms,
        producer_id=values.producer_id,
        producer_epoch=values.producer_epoch,
        topics=[TopicData(*entry) for entry in by_topic(values.partitions).items()],
    )

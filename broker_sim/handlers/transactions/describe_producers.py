"""DescribeProducers (key 61), version 0 (KIP-664); mirrors `KafkaApis.handleDescribeProducersRequest`.

Behaviour:
* every replica answers, from its own log: a follower may know less than the leader
* a producer with an open transaction has the transaction's first offset, which helps to find hanging transactions

Deliberate difference: producers are in the order of their first write, not in that of Java's hash table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS, NOT_HOSTED_TEXT, ApiError, ErrorCode
from broker_sim.handlers.support.authorization import is_authorized
from broker_sim.handlers.support.partition_errors import raise_injected_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_name import invalid_topic_name
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.special_values import NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

Partition = messages.DescribeProducersResponse.PartitionResponse


def handle_describe_producers(
    request: messages.DescribeProducersRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeProducersResponse], None],
) -> None:
    """List the producer states of each partition's log."""
    response = messages.DescribeProducersResponse()
    for topic in request.topics:
        problem = invalid_topic_name(topic.name)
        error_code = ErrorCode.NONE
        if problem is not None:
            error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif not is_authorized(context, AclOperation.READ, ResourceType.TOPIC, topic.name):
            error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            problem = ERROR_TEXTS[error_code]
        elif topic.name not in context.broker.image.topics:
            error_code, problem = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED_TEXT
        response.topics.append(
            messages.DescribeProducersResponse.TopicResponse(
                topic.name,
                [
                    Partition(number, error_code, problem)
                    if error_code
                    else _describe(context, TopicPartition(topic.name, number))
                    for number in topic.partition_indexes
                ],
            )
        )
    respond(response)


def _describe(context: RequestContext, key: TopicPartition) -> Partition:
    try:
        raise_injected_error(context, key.topic, key.partition)
        partition = context.broker.replica_manager.get_partition(key)
    except ApiError as error:
        return Partition(key.partition, error.error_code)
    return Partition(
        key.partition,
        active_producers=[
            messages.DescribeProducersResponse.ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=NO_OFFSET
                if entry.current_txn_first_offset is None
                else entry.current_txn_first_offset,
            )
            for entry in partition.log.producer_state.active_producers.values()
        ],
    )

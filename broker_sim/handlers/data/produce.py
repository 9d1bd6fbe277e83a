"""Produce (key 0), versions 3-13; mirrors ``KafkaApis.handleProduceRequest``.

Version notes: 10 tells where the leader is (KIP-951), 12 is implicit transaction verification,
13 names topics by id (KIP-516).

One response answers all partitions: those whose fate is known at once wait for the parked ones.
With acks=0 there is no response; an error closes the connection, so that the client looks for a
better broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.leader_hint import LeaderHints
from broker_sim.metadata.topic_name import is_internal_topic
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import TRANSACTIONAL_FLAG, validate_produce_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import BrokerServices, RequestContext
    from broker_sim.replica import ProducePartitionStatus

__all__ = ["handle_produce"]

VALID_REQUIRED_ACKS = (-1, 0, 1)
ADMIN_CLIENT_ID = "__admin_client"
"""Clients that call themselves so may write to internal topics."""
TOPIC_ID_VERSION = 13
LEADER_HINT_VERSION = 10
ATTRIBUTES_LOW_BYTE = 22
"""Where a batch's flags stand."""

Refused = tuple["messages.ProduceRequest.TopicProduceData", int, ErrorCode]
"""A topic as it was named, a partition of it, and the error."""


def handle_produce(
    request: messages.ProduceRequest,
    context: RequestContext,
    respond: Callable[[messages.ProduceResponse | None], None],
) -> None:
    """Append to the partitions that are known and lead here; answer for all of them."""
    entries, refused = _sort_out(context.broker, request, context)

    def on_appended(statuses: dict[TopicPartition, ProducePartitionStatus]) -> None:
        if request.acks != 0:
            respond(_build_response(context.broker, context.api_version, statuses, refused))
            return
        errors = {s.error_code.name for s in statuses.values() if s.error_code}
        errors.update(error.name for _, _, error in refused)
        if errors:
            context.connection.close(f"acks=0 produce failed with {', '.join(sorted(errors))}")
        else:
            respond(None)

    if entries:
        context.broker.replica_manager.append_records(
            entries,
            on_appended,
            timeout_ms=request.timeout_ms,
            required_acks=request.acks,
            client_id=context.client_id,
        )
    else:
        on_appended({})


def _has_transactional_records(request: messages.ProduceRequest) -> bool:
    """Whether any batch says that it belongs to a transaction; looks at one byte of each."""
    return any(
        isinstance(partition.records, memoryview)
        and len(partition.records) > ATTRIBUTES_LOW_BYTE
        and partition.records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG
        for topic in request.topic_data
        for partition in topic.partition_data
    )


def _refuse_all(request: messages.ProduceRequest, error_code: ErrorCode) -> list[Refused]:
    return [
        (topic, partition.index, error_code)
        for topic in request.topic_data
        for partition in topic.partition_data
    ]


def _sort_out(
    broker: BrokerServices, request: messages.ProduceRequest, context: RequestContext
) -> tuple[dict[TopicPartition, memoryview], list[Refused]]:
    """Part what can be appended from what is refused at once."""
    api_version = context.api_version
    if request.transactional_id is None and _has_transactional_records(request):
        return {}, _refuse_all(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    entries: dict[TopicPartition, memoryview] = {}
    refused: list[Refused] = []
    for topic in request.topic_data:
        name, unknown = _topic_name(broker, topic, api_version)
        is_locked = is_internal_topic(name) and context.client_id != ADMIN_CLIENT_ID
        for partition in topic.partition_data:
            key = TopicPartition(name, partition.index)
            if broker.image.partition(key) is None:
                refused.append((topic, partition.index, unknown))
                continue
            try:
                records = _checked_records(partition.records, request.acks, api_version)
            except ApiError as error:
                refused.append((topic, partition.index, error.error_code))
                continue
            if is_locked:
                refused.append((topic, partition.index, ErrorCode.INVALID_TOPIC_EXCEPTION))
            else:
                entries[key] = records
    return entries, refused


def _checked_records(records: object, acks: int, api_version: int) -> memoryview:
    """Return the records if they may be appended so; raises `ApiError` otherwise."""
    if not isinstance(records, memoryview):
        raise ApiError(ErrorCode.INVALID_RECORD, "there are no records")
    validate_produce_records(records, api_version)
    if acks not in VALID_REQUIRED_ACKS:
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {acks}, not -1, 0 or 1")
    return records


def _topic_name(
    broker: BrokerServices, topic: messages.ProduceRequest.TopicProduceData, api_version: int
) -> tuple[str, ErrorCode]:
    """Return the topic's name ("" if its id is unknown) and the error for unknown partitions."""
    if api_version < TOPIC_ID_VERSION:
        return topic.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    name = broker.image.topic_names.get(topic.topic_id, "")
    return name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if name else ErrorCode.UNKNOWN_TOPIC_ID


def _build_response(
    broker: BrokerServices,
    api_version: int,
    statuses: dict[TopicPartition, ProducePartitionStatus],
    refused: list[Refused],
) -> messages.ProduceResponse:
    response = messages.ProduceResponse()
    topics: dict[str | bytes, messages.ProduceResponse.TopicProduceResponse] = {}
    hints: LeaderHints | None = None
    for topic_partition, status in statuses.items():
        topic = topics.get(topic_partition.topic)
        if topic is None:
            state = broker.image.topics.get(topic_partition.topic)
            topic = messages.ProduceResponse.TopicProduceResponse(
                name=topic_partition.topic,
                topic_id=bytes(16) if state is None else state.topic_id,
            )
            topics[topic_partition.topic] = topic
            response.responses.append(topic)
        answer = messages.ProduceResponse.PartitionProduceResponse(
            index=topic_partition.partition,
            error_code=status.error_code,
            base_offset=status.base_offset,
            log_append_time_ms=status.log_append_time_ms,
            log_start_offset=status.log_start_offset,
            error_message=status.error_message,
        )
        for batch_index, text in status.record_errors:
            answer.record_errors.append(
                messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index, text)
            )
        if (
            status.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            and api_version >= LEADER_HINT_VERSION
        ):
            hints = hints or LeaderHints(broker.image)
            hints.add(topic_partition, answer.current_leader)
        topic.partition_responses.append(answer)
    for asked, index, error_code in refused:
        key = asked.topic_id if api_version >= TOPIC_ID_VERSION else asked.name
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = messages.ProduceResponse.TopicProduceResponse(
                name=asked.name, topic_id=asked.topic_id
            )
            response.responses.append(topic)
        topic.partition_responses.append(
            messages.ProduceResponse.PartitionProduceResponse(
                index=index, error_code=error_code, base_offset=-1
            )
        )
    if hints is not None:
        for endpoint in hints.endpoints():
            response.node_endpoints.append(messages.ProduceResponse.NodeEndpoint(*endpoint))
    return response

"""Produce (key 0), versions 3-13; mirrors `KafkaApis.handleProduceRequest`.

Behaviour:
* all partitions are in one response: those that fail at once wait for the parked ones
* acks=0 has no response; an error closes the connection, so that the client looks up the new leader
* records are checked before anything is appended, partition by partition
* a transactional batch waits until the transaction coordinator has verified the partition (KIP-890)

Version notes: 10 has the current leader (KIP-951), 11 may return TRANSACTION_ABORTABLE, from 12 on
the leader adds partitions to transactions (both KIP-890), 13 identifies topics by id (KIP-516).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.authorization import authorization_error, is_authorized
from broker_sim.handlers.support.partition_errors import LeaderHints
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_name import is_internal_topic
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import ATTRIBUTES_LOW_BYTE, TRANSACTIONAL_FLAG, validate_produce_records
from broker_sim.replica import TransactionSupportedOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim.handlers.context import RequestContext
    from broker_sim.log import Appendable, ValidatedRecords
    from broker_sim.metadata import MetadataImage
    from broker_sim.replica import ProducePartitionStatus

VALID_REQUIRED_ACKS = (-1, 0, 1)
ADMIN_CLIENT_ID = "__admin_client"
"""The client id that may write to internal topics."""
SHORT_EFFORT: Final = 8
"""Effort of 4 KB compressed or 8 000 records: below it, requests do not wait for other producers' large batches."""
TOPIC_ID_VERSION = 13
LEADER_HINT_VERSION = 10

# Python 3.11 takes 0.1 us to look up an enum member, and every topic and partition needs these.
_NOT_LEADER: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
_ALLOWED: Final = ErrorCode.NONE


class _Refused(NamedTuple):
    """A partition whose records are not appended, with its topic as in the request."""

    topic_name: str
    topic_id: bytes
    partition: int
    error_code: ErrorCode


def handle_produce(
    request: messages.ProduceRequest,
    context: RequestContext,
    respond: Callable[[messages.ProduceResponse | None], None],
) -> None:
    """Append to the partitions that this broker leads, and answer for all partitions."""
    entries: dict[TopicPartition, memoryview] = {}
    if _has_unauthorized_transaction(request, context):
        refused = _refuse_all(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    else:
        entries, refused = _check_partitions(request, context)
    answer = _ProduceAnswer(request, context, refused, respond)
    slow, effort = _slow_validations(entries, context)
    if slow:
        append = partial(_append_validated, request, context, entries, _topic_ids(entries, context), answer)
        context.broker.run_beside(
            lambda: {key: validate() for key, validate in slow.items()}, append, is_short=effort <= SHORT_EFFORT
        )
    else:
        _append(request, context, entries, answer)


class _ProduceAnswer:
    """Answers one produce for all its partitions: those that are appended and those that are refused."""

    __slots__ = ("_context", "_request", "_respond", "refused")

    def __init__(
        self,
        request: messages.ProduceRequest,
        context: RequestContext,
        refused: list[_Refused],
        respond: Callable[[messages.ProduceResponse | None], None],
    ) -> None:
        self._request = request
        self._context = context
        self._respond = respond
        self.refused = refused

    def send(self, statuses: dict[TopicPartition, ProducePartitionStatus]) -> None:
        """Respond with these results; with acks=0 there is no response, and an error closes the connection."""
        if self._request.acks != 0:
            self._respond(_build_response(self._context, statuses, self.refused))
            return
        errors = {status.error_code.name for status in statuses.values() if status.error_code}
        errors.update(refusal.error_code.name for refusal in self.refused)
        if errors:
            self._context.connection.close(f"acks=0 produce failed with {', '.join(sorted(errors))}")
        else:
            self._respond(None)


def _slow_validations(
    entries: Mapping[TopicPartition, memoryview], context: RequestContext
) -> tuple[dict[TopicPartition, Callable[[], ValidatedRecords]], float]:
    """Return validation functions by partition and their total effort; no functions if they are fast."""
    partitions = context.broker.replica_manager.partitions
    effort = 0.0
    logs = {}
    for key, records in entries.items():
        partition = partitions.get(key)
        if partition is not None and (log_effort := partition.log.validation_effort(records)):
            effort += log_effort
            logs[key] = partition.log
    if effort <= 1:
        return {}, effort
    return {key: log.validation(entries[key]) for key, log in logs.items()}, effort


def _topic_ids(entries: Iterable[TopicPartition], context: RequestContext) -> dict[str, bytes]:
    """Return the ids of these partitions' topics."""
    topics = context.broker.image.topics
    return {key.topic: topics[key.topic].topic_id for key in entries}


def _take_recreated(
    entries: dict[TopicPartition, Appendable], topic_ids: Mapping[str, bytes], context: RequestContext
) -> list[_Refused]:
    """Remove the entries of topics that have been deleted and recreated with another id, and return them as refused.

    Mirrors `ReplicaManager.getPartitionOrException`, which compares the ids at each append.
    """
    partitions = context.broker.replica_manager.partitions
    refused: list[_Refused] = []
    for key in list(entries):
        partition, topic_id = partitions.get(key), topic_ids[key.topic]
        if partition is not None and partition.topic_id != topic_id:
            del entries[key]
            refused.append(_Refused(key.topic, topic_id, key.partition, ErrorCode.UNKNOWN_TOPIC_ID))
    return refused


def _append_validated(
    request: messages.ProduceRequest,
    context: RequestContext,
    entries: Mapping[TopicPartition, memoryview],
    topic_ids: Mapping[str, bytes],
    answer: _ProduceAnswer,
    validated: Mapping[TopicPartition, ValidatedRecords],
) -> None:
    """Append the records validated on another thread, and the others."""
    appendable: dict[TopicPartition, Appendable] = {**entries, **validated}
    answer.refused += _take_recreated(appendable, topic_ids, context)
    _append(request, context, appendable, answer)


def _append(
    request: messages.ProduceRequest,
    context: RequestContext,
    entries: Mapping[TopicPartition, Appendable],
    answer: _ProduceAnswer,
) -> None:
    """Append, and respond now or when the records are acknowledged."""
    transactional_id = request.transactional_id
    try:
        if not entries:
            answer.send({})
        elif transactional_id is not None and _has_transactional_records(request):
            context.broker.transactional_appends.append(
                entries,
                transactional_id,
                TransactionSupportedOperation.of_produce(context.api_version),
                answer.send,
                timeout_ms=request.timeout_ms,
                required_acks=request.acks,
                client_id=context.client_id,
            )
        else:
            context.broker.replica_manager.append_records(
                entries,
                answer.send,
                timeout_ms=request.timeout_ms,
                required_acks=request.acks,
                client_id=context.client_id,
            )
    except ApiError as error:
        answer.refused = _refuse_all(request, error.error_code)
        answer.send({})


def _has_unauthorized_transaction(request: messages.ProduceRequest, context: RequestContext) -> bool:
    """Whether there are transactional records but no transactional id that the client may write with."""
    transactional_id = request.transactional_id
    if transactional_id is not None and context.broker.authorizer is None:
        return False
    return _has_transactional_records(request) and (
        transactional_id is None
        or not is_authorized(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    )


def _has_transactional_records(request: messages.ProduceRequest) -> bool:
    """Whether the flags of any batch say that it is transactional; reads one byte of each."""
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if (
                isinstance(records, memoryview)
                and len(records) > ATTRIBUTES_LOW_BYTE
                and records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG
            ):
                return True
    return False


def _refuse_all(request: messages.ProduceRequest, error_code: ErrorCode) -> list[_Refused]:
    return [
        _Refused(topic.name, topic.topic_id, partition.index, error_code)
        for topic in request.topic_data
        for partition in topic.partition_data
    ]


def _check_partitions(
    request: messages.ProduceRequest, context: RequestContext
) -> tuple[dict[TopicPartition, memoryview], list[_Refused]]:
    """Return the records to append by partition, and the refused partitions."""
    image = context.broker.image
    by_id = context.api_version >= TOPIC_ID_VERSION
    entries: dict[TopicPartition, memoryview] = {}
    refused: list[_Refused] = []
    is_guarded = context.broker.authorizer is not None
    for topic in request.topic_data:
        name = image.topic_names.get(topic.topic_id, "") if by_id else topic.name
        denial = (
            authorization_error(context, AclOperation.WRITE, ResourceType.TOPIC, name)
            if is_guarded and name
            else _ALLOWED
        )
        for partition in topic.partition_data:
            key = TopicPartition(name, partition.index)
            try:
                _check_partition(context, image, key, denial)
                entries[key] = _checked_records(context, key, partition.records, request.acks)
            except ApiError as error:
                refused.append(_Refused(topic.name, topic.topic_id, partition.index, error.error_code))
    return entries, refused


def _check_partition(context: RequestContext, image: MetadataImage, key: TopicPartition, denial: ErrorCode) -> None:
    """Raise ApiError if the topic is denied, a fault is injected, or the partition does not exist."""
    if denial:
        raise ApiError(denial)
    faults = context.faults
    if faults is not None and (injected := faults.error_for(key.topic, key.partition)):
        raise ApiError(injected)
    if image.partition(key) is None:
        is_unknown_id = not key.topic and context.api_version >= TOPIC_ID_VERSION
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID if is_unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _checked_records(context: RequestContext, key: TopicPartition, records: object, acks: int) -> memoryview:
    """Return the records if this producer may append them with these acks. Raises ApiError."""
    if not isinstance(records, memoryview):
        raise ApiError(ErrorCode.INVALID_RECORD, "there are no records")
    validate_produce_records(records, context.api_version)
    if acks not in VALID_REQUIRED_ACKS:
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {acks}, not -1, 0 or 1")
    if is_internal_topic(key.topic) and context.client_id != ADMIN_CLIENT_ID:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return records


def _build_response(
    context: RequestContext, statuses: dict[TopicPartition, ProducePartitionStatus], refused: list[_Refused]
) -> messages.ProduceResponse:
    """Return the response for all partitions, with the current leaders of those that this broker does not lead."""
    api_version, image = context.api_version, context.broker.image
    response = messages.ProduceResponse()
    topics: dict[str | bytes, messages.ProduceResponse.TopicProduceResponse] = {}
    hints: LeaderHints | None = None
    for key, status in statuses.items():
        topic = topics.get(key.topic)
        if topic is None:
            state = image.topics.get(key.topic)
            topic = topics[key.topic] = messages.ProduceResponse.TopicProduceResponse(
                name=key.topic, topic_id=NO_TOPIC_ID if state is None else state.topic_id
            )
            response.responses.append(topic)
        answer = _partition_response(key.partition, status)
        if status.error_code is _NOT_LEADER and api_version >= LEADER_HINT_VERSION:
            hints = hints or LeaderHints(image, context.listener)
            hints.add(key, answer.current_leader)
        topic.partition_responses.append(answer)
    for name, topic_id, index, error_code in refused:
        topic_key = topic_id if api_version >= TOPIC_ID_VERSION else name
        topic = topics.get(topic_key)
        if topic is None:
            topic = topics[topic_key] = messages.ProduceResponse.TopicProduceResponse(name=name, topic_id=topic_id)
            response.responses.append(topic)
        topic.partition_responses.append(
            messages.ProduceResponse.PartitionProduceResponse(index=index, error_code=error_code, base_offset=-1)
        )
    if hints is not None:
        for endpoint in hints.endpoints():
            response.node_endpoints.append(messages.ProduceResponse.NodeEndpoint(*endpoint))
    return response


def _partition_response(
    index: int, status: ProducePartitionStatus
) -> messages.ProduceResponse.PartitionProduceResponse:
    answer = messages.ProduceResponse.PartitionProduceResponse(
        index=index,
        error_code=status.error_code,
        base_offset=status.base_offset,
        log_append_time_ms=status.log_append_time_ms,
        log_start_offset=status.log_start_offset,
        error_message=status.error_message,
    )
    for batch_index, text in status.record_errors:
        answer.record_errors.append(messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index, text))
    return answer

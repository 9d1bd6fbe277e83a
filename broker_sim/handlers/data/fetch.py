"""Fetch (key 1), versions 4-18; mirrors `KafkaApis.handleFetchRequest`.

Behaviour:
* answers at once with an error or with enough data, else when data comes or at the timeout
* a partition that does not exist is answered, but does not end the wait for the others
* `fetch.max.bytes` limits what the request asks for

Version notes: 7 brings fetch sessions, 9 leader epochs, 11 racks and fetching from followers
(KIP-392), 12 the last fetched epoch (KIP-595), 13 topic ids (KIP-516), 15 the replica state,
16 tells where the leader is (KIP-951), 18 a follower's high watermark.

Left out: fetch sessions. A client that asks for one gets session id 0, which the protocol allows,
and sends whole requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.leader_hint import LeaderHints
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.replica import FetchIsolation, FetchParams, FetchPartition, FetchPartitionData

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_fetch"]

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
SESSION_VERSION = 7
RACK_VERSION = 11
TOPIC_ID_VERSION = 13
REPLICA_STATE_VERSION = 15
LEADER_HINT_VERSION = 16
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
# Python 3.11 takes 0.1 us to look an enum's member up, and every fetch needs one of these.
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_LOG_END: Final = FetchIsolation.LOG_END
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED
HINTED_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class _Refused(NamedTuple):
    """A partition that is not read, with its topic as the request names it."""

    topic_name: str
    topic_id: bytes
    partition: int
    error_code: ErrorCode


class _Wanted:
    """The partitions of one request."""

    __slots__ = ("fetches", "has_injected_error", "refused")

    def __init__(self) -> None:
        self.fetches: dict[TopicPartition, FetchPartition] = {}
        self.refused: list[_Refused] = []
        self.has_injected_error = False


def handle_fetch(
    request: messages.FetchRequest,
    context: RequestContext,
    respond: Callable[[messages.FetchResponse], None],
) -> None:
    """Read what is asked for, now or when there is enough."""
    version = context.api_version
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        respond(_failed(request, version))
        return
    if version >= SESSION_VERSION and request.session_epoch not in (FINAL_EPOCH, INITIAL_EPOCH):
        respond(messages.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        return
    wanted = _sort_out(request, context)
    if not wanted.fetches:
        respond(_build_response(context, wanted, ()))
        return
    context.broker.replica_manager.fetch_messages(
        # As an error of the log does, an injected one ends the wait.
        _fetch_params(request, context, 0 if wanted.has_injected_error else request.max_wait_ms),
        list(wanted.fetches.items()),
        lambda results: respond(_build_response(context, wanted, results)),
    )


def _failed(request: messages.FetchRequest, version: int) -> messages.FetchResponse:
    """Answer an isolation level that does not exist; before topic ids partition by partition."""
    response = messages.FetchResponse()
    if version >= SESSION_VERSION:
        response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    if version >= TOPIC_ID_VERSION:
        return response
    for topic in request.topics:
        partitions = [
            _refused_data(partition.partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            for partition in topic.partitions
        ]
        response.responses.append(
            messages.FetchResponse.FetchableTopicResponse(topic.topic, partitions=partitions)
        )
    return response


def _sort_out(request: messages.FetchRequest, context: RequestContext) -> _Wanted:
    """Return what can be read, and what is refused before."""
    faults, image = context.faults, context.broker.image
    by_id = context.api_version >= TOPIC_ID_VERSION
    wanted = _Wanted()
    for topic in request.topics:
        name = image.topic_names.get(topic.topic_id, "") if by_id else topic.topic
        state = image.topics.get(name)
        count = 0 if state is None else len(state.partitions)
        for asked in topic.partitions:
            number = asked.partition
            error_code = None
            if faults is not None and (injected := faults.error_for(name, number)):
                error_code = injected
                wanted.has_injected_error = True
            elif not 0 <= number < count:
                error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if by_id and not name:
                    error_code = ErrorCode.UNKNOWN_TOPIC_ID
            if error_code is not None:
                wanted.refused.append(_Refused(topic.topic, topic.topic_id, number, error_code))
                continue
            wanted.fetches[TopicPartition(name, number)] = FetchPartition(
                fetch_offset=asked.fetch_offset,
                max_bytes=asked.partition_max_bytes,
                topic_id=topic.topic_id,
                log_start_offset=asked.log_start_offset,
                current_leader_epoch=asked.current_leader_epoch,
                last_fetched_epoch=asked.last_fetched_epoch,
            )
    return wanted


def _fetch_params(
    request: messages.FetchRequest, context: RequestContext, max_wait_ms: int
) -> FetchParams:
    version = context.api_version
    if version >= REPLICA_STATE_VERSION:
        replica_id = request.replica_state.replica_id
        replica_epoch = request.replica_state.replica_epoch
    else:
        replica_id, replica_epoch = request.replica_id, -1
    max_bytes = min(request.max_bytes, context.broker.config.fetch_max_bytes)
    if replica_id >= 0:
        isolation = _LOG_END
    elif request.isolation_level == READ_COMMITTED:
        isolation = _TXN_COMMITTED
    else:
        isolation = _HIGH_WATERMARK
    return FetchParams(
        max_wait_ms=max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=isolation,
        replica_id=replica_id,
        replica_epoch=replica_epoch,
        has_client_metadata=version >= RACK_VERSION,
        client_id=context.client_id,
    )


def _build_response(
    context: RequestContext,
    wanted: _Wanted,
    results: Sequence[tuple[TopicPartition, FetchPartitionData]],
) -> messages.FetchResponse:
    """Answer for all partitions, with the leaders known now where this broker is not the leader."""
    response = messages.FetchResponse()
    hints: LeaderHints | None = None
    topic: messages.FetchResponse.FetchableTopicResponse | None = None
    topic_name: str | None = None
    for topic_partition, data in results:
        if topic is None or topic_partition.topic != topic_name:
            topic_name = topic_partition.topic
            # The id of the request: the topic may be gone by the time of the answer.
            topic = messages.FetchResponse.FetchableTopicResponse(
                topic=topic_name, topic_id=wanted.fetches[topic_partition].topic_id
            )
            response.responses.append(topic)
        answer = _partition_data(topic_partition.partition, data)
        if data.error_code in HINTED_ERRORS and context.api_version >= LEADER_HINT_VERSION:
            hints = hints or LeaderHints(context.broker.image)
            hints.add(topic_partition, answer.current_leader)
        topic.partitions.append(answer)
    for name, topic_id, number, error_code in wanted.refused:
        response.responses.append(
            messages.FetchResponse.FetchableTopicResponse(
                topic=name, topic_id=topic_id, partitions=[_refused_data(number, error_code)]
            )
        )
    if hints is not None:
        for endpoint in hints.endpoints():
            response.node_endpoints.append(messages.FetchResponse.NodeEndpoint(*endpoint))
    return response


def _refused_data(partition: int, error_code: ErrorCode) -> messages.FetchResponse.PartitionData:
    """Return the answer of a partition that was not looked for in the logs."""
    answer = _partition_data(partition, FetchPartitionData.failed(error_code))
    answer.aborted_transactions = []
    return answer


def _partition_data(index: int, data: FetchPartitionData) -> messages.FetchResponse.PartitionData:
    answer = messages.FetchResponse.PartitionData(
        partition_index=index,
        error_code=data.error_code,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        log_start_offset=data.log_start_offset,
        records=data.records,
    )
    answer.aborted_transactions = None
    if data.aborted_transactions is not None:
        answer.aborted_transactions = [
            messages.FetchResponse.AbortedTransaction(
                producer_id=aborted.producer_id, first_offset=aborted.first_offset
            )
            for aborted in data.aborted_transactions
        ]
    if data.diverging_epoch is not None:
        answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset = data.diverging_epoch
    return answer

"""ListOffsets (key 2), versions 1-11; mirrors `ReplicaManager.fetchOffset`.

Behaviour:
* a consumer sees no offset beyond the high watermark or, reading committed, the last stable offset
* a new leader whose high watermark is below its epoch's start returns OFFSET_NOT_AVAILABLE (KIP-207)
* a partition that is listed twice is answered once, with INVALID_REQUEST

Version notes: 2 brings the isolation level, 4 leader epochs, 7 the maximum timestamp (-3), 8 the
earliest local offset (-4), 9 the latest tiered offset (-5), 10 a timeout for remote storage, 11 the
earliest offset that is not uploaded yet (-6).

Left out: remote storage. -4 is answered as -2, -5 and -6 with no offset.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.handlers.support.partition_errors import raise_injected_error
from broker_sim.handlers.support.slow_searches import SlowSearchError, SlowSearches
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.special_values import (
    CONSUMER_REPLICA_ID,
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    ISOLATION_LEVELS,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    READ_COMMITTED,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import BrokerServices, RequestContext

EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6
FIRST_VERSIONS = {
    EARLIEST_TIMESTAMP: 1,
    LATEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
NO_VERSION = 1 << 15
LEADER_EPOCH_VERSION = 4
DEBUG_REPLICA_ID = -2


class _LogOffset(NamedTuple):
    """An offset of a log; -1 for each field without a value."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


def handle_list_offsets(
    request: messages.ListOffsetsRequest,
    context: RequestContext,
    respond: Callable[[messages.ListOffsetsResponse], None],
) -> None:
    """Look up one offset for each partition."""
    denied = unauthorized_names(
        context, AclOperation.DESCRIBE, ResourceType.TOPIC, (topic.name for topic in request.topics)
    )
    _answer(request, context, denied, SlowSearches(), respond)


def _answer(
    request: messages.ListOffsetsRequest,
    context: RequestContext,
    denied: AbstractSet[str],
    searches: SlowSearches,
    respond: Callable[[messages.ListOffsetsResponse], None],
) -> None:
    """Respond, at once or after the slow searches."""
    response = messages.ListOffsetsResponse
    requested_partitions = [
        (TopicPartition(topic.name, partition.partition_index), partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    counts = Counter(key for key, _ in requested_partitions)
    answers: dict[str, dict[int, messages.ListOffsetsResponse.ListOffsetsPartitionResponse]] = {}
    for key, partition in requested_partitions:
        answer = response.ListOffsetsPartitionResponse(partition_index=key.partition)
        try:
            if key.topic in denied:
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # noqa: TRY301
            raise_injected_error(context, key.topic, key.partition)
            _check(request, partition, context.api_version, counts[key])
            entry = _look_up(context.broker, request, key, partition, searches)
        except SlowSearchError:
            continue
        except ApiError as error:
            answer.error_code = error.error_code
        else:
            answer.timestamp, answer.offset = entry.timestamp, entry.offset
            if context.api_version >= LEADER_EPOCH_VERSION:
                answer.leader_epoch = entry.leader_epoch
        answers.setdefault(key.topic, {})[key.partition] = answer
    if searches.are_waiting:
        context.broker.run_beside(searches.run, lambda _: _answer(request, context, denied, searches, respond))
        return
    topics = [
        response.ListOffsetsTopicResponse(name, list(partitions.values())) for name, partitions in answers.items()
    ]
    respond(response(topics=topics))


def _check(
    request: messages.ListOffsetsRequest,
    partition: messages.ListOffsetsRequest.ListOffsetsPartition,
    version: int,
    count: int,
) -> None:
    """Raise ApiError for an invalid lookup; `count` is how often the request has the partition."""
    if request.isolation_level not in ISOLATION_LEVELS:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if count > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if partition.timestamp < 0 and version < FIRST_VERSIONS.get(partition.timestamp, NO_VERSION):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)


def _look_up(
    broker: BrokerServices,
    request: messages.ListOffsetsRequest,
    key: TopicPartition,
    lookup: messages.ListOffsetsRequest.ListOffsetsPartition,
    searches: SlowSearches,
) -> _LogOffset:
    """Return the log's offset for the timestamp. Raises ApiError and SlowSearchError."""
    partition = broker.replica_manager.get_partition(key)
    log = partition.local_log(lookup.current_leader_epoch, require_leader=request.replica_id != DEBUG_REPLICA_ID)
    is_client = request.replica_id == CONSUMER_REPLICA_ID
    if not is_client:
        last_fetchable = log.log_end_offset
    elif request.isolation_level == READ_COMMITTED:
        last_fetchable = log.last_stable_offset
    else:
        last_fetchable = log.high_watermark
    if lookup.timestamp == LATEST_TIMESTAMP:
        if is_client:
            partition.check_high_watermark()
        return _LogOffset(offset=last_fetchable, leader_epoch=partition.leader_epoch)
    if lookup.timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        epoch = log.leader_epoch_cache.epoch_for_offset(log.log_start_offset)
        return _LogOffset(offset=log.log_start_offset, leader_epoch=-1 if epoch is None else epoch)
    if lookup.timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return _LogOffset()
    record = searches.look_up(key, partition.leader_epoch, partial(log.fetch_offset_by_timestamp, lookup.timestamp))
    if record is None or record.offset >= last_fetchable:
        if is_client:
            partition.check_high_watermark()
        return _LogOffset()
    return _LogOffset(record.timestamp, record.offset, record.leader_epoch)

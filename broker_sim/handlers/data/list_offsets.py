"""ListOffsets (key 2), versions 1-11; mirrors ``ReplicaManager.fetchOffset``.

Version notes: 2 brings the isolation level, 4 leader epochs, 7 the maximum timestamp (-3),
8 the earliest local offset (-4), 9 the latest tiered offset (-5; nothing is tiered here), 10 a
timeout for remote storage, 11 the earliest offset that is not uploaded yet (-6).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import BrokerServices, RequestContext
    from broker_sim.replica import Partition

__all__ = ["handle_list_offsets"]

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
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
READ_UNCOMMITTED = 0
READ_COMMITTED = 1
ISOLATION_LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)
CONSUMER_REPLICA_ID = -1
DEBUG_REPLICA_ID = -2

Found = tuple[int, int, int]
"""Timestamp, offset and leader epoch; -1 where there is none."""
NOT_FOUND: Found = (-1, -1, -1)


def handle_list_offsets(
    request: messages.ListOffsetsRequest,
    context: RequestContext,
    respond: Callable[[messages.ListOffsetsResponse], None],
) -> None:
    """Look up one offset for each partition asked for; what is asked twice is answered once."""
    response = messages.ListOffsetsResponse
    asked = [
        (TopicPartition(topic.name, partition.partition_index), partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    counts = Counter(key for key, _ in asked)
    answers: dict[str, dict[int, messages.ListOffsetsResponse.ListOffsetsPartitionResponse]] = {}
    for key, partition in asked:
        answer = response.ListOffsetsPartitionResponse(partition_index=key.partition)
        try:
            _check(request, partition, context.api_version, counts[key])
            found = _look_up(context.broker, request, key, partition)
        except ApiError as error:
            answer.error_code = error.error_code
        else:
            answer.timestamp, answer.offset, leader_epoch = found
            if context.api_version >= LEADER_EPOCH_VERSION:
                answer.leader_epoch = leader_epoch
        answers.setdefault(key.topic, {})[key.partition] = answer
    topics = [
        response.ListOffsetsTopicResponse(name, list(partitions.values()))
        for name, partitions in answers.items()
    ]
    respond(response(topics=topics))


def _check(
    request: messages.ListOffsetsRequest,
    asked: messages.ListOffsetsRequest.ListOffsetsPartition,
    version: int,
    count: int,
) -> None:
    """Raise `ApiError` for a question that no log can answer."""
    if request.isolation_level not in ISOLATION_LEVELS:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if count > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if asked.timestamp < 0 and version < FIRST_VERSIONS.get(asked.timestamp, NO_VERSION):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)


def _look_up(
    broker: BrokerServices,
    request: messages.ListOffsetsRequest,
    key: TopicPartition,
    asked: messages.ListOffsetsRequest.ListOffsetsPartition,
) -> Found:
    partition = broker.replica_manager.get_partition(key)
    only_leader = request.replica_id != DEBUG_REPLICA_ID
    log = partition.local_log(asked.current_leader_epoch, only_leader)
    is_client = request.replica_id == CONSUMER_REPLICA_ID
    if not is_client:
        last_fetchable = log.log_end_offset
    elif request.isolation_level == READ_COMMITTED:
        last_fetchable = log.last_stable_offset
    else:
        last_fetchable = log.high_watermark
    if asked.timestamp == LATEST_TIMESTAMP:
        _check_high_watermark(partition, is_client)
        return (-1, last_fetchable, partition.leader_epoch)
    if asked.timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        epoch = log.leader_epoch_cache.epoch_for_offset(log.log_start_offset)
        return (-1, log.log_start_offset, -1 if epoch is None else epoch)
    if asked.timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return NOT_FOUND
    found = log.fetch_offset_by_timestamp(asked.timestamp)
    if found is None or found.offset >= last_fetchable:
        _check_high_watermark(partition, is_client)
        return NOT_FOUND
    return (found.timestamp, found.offset, found.leader_epoch)


def _check_high_watermark(partition: Partition, is_client: bool) -> None:
    """Raise OFFSET_NOT_AVAILABLE while a new leader's HW is behind its epoch's start (KIP-207)."""
    start_offset = partition.leader_epoch_start_offset
    if is_client and start_offset is not None and start_offset > partition.log.high_watermark:
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)

"""Log reads of share fetches, from partitions that this broker leads.

Mirrors a part of `ShareFetchUtils` and of `DelayedShareFetch`, and `PartitionMaxBytesStrategy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.special_values import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from broker_sim.replica import FetchPartition

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from broker_sim.log import PartitionLog
    from broker_sim.metadata.topic_partition import TopicIdPartition, TopicPartition
    from broker_sim.replica import FetchParams, FetchPartitionData, Partition, ReplicaManager


class LogOffsetMetadata(NamedTuple):
    """The position of an offset in the log: its segment, and the byte position."""

    offset: int
    segment_base_offset: int
    position: int


class LogReader:
    """The reads that share fetches need from the replica manager."""

    __slots__ = ("_replica_manager",)

    def __init__(self, replica_manager: ReplicaManager) -> None:
        self._replica_manager = replica_manager

    def leader_partition(self, key: TopicPartition) -> Partition:
        """Return the partition, which this broker must lead.

        Raises ApiError: NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        partition = self._replica_manager.get_partition(key)
        if not partition.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def find_offset(self, key: TopicPartition, leader_epoch: int, timestamp: int) -> int:
        """Return the offset for a timestamp (ms), or for -1 the high watermark and for -2 the log start offset.

        Raises ApiError as `Partition.local_log`, and OFFSET_NOT_AVAILABLE if all records are older, or while
        a new leader does not know the high watermark.
        """
        partition = self._replica_manager.get_partition(key)
        log = partition.local_log(leader_epoch, require_leader=True)
        if timestamp == EARLIEST_TIMESTAMP:
            return log.log_start_offset
        start_offset = partition.leader_epoch_start_offset
        lags = start_offset is not None and start_offset > log.high_watermark
        if timestamp == LATEST_TIMESTAMP and not lags:
            return log.high_watermark
        record = None if lags else log.fetch_offset_by_timestamp(timestamp)
        if record is None:
            text = f"Offset for timestamp {timestamp} not found for topic partition: {key}"
            raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, text)
        return record.offset

    def read(
        self, params: FetchParams, offsets: Mapping[TopicIdPartition, int], max_bytes: Mapping[TopicIdPartition, int]
    ) -> dict[TopicIdPartition, FetchPartitionData]:
        """Read each partition from its offset on."""
        infos = [
            (
                partition.topic_partition,
                FetchPartition(
                    fetch_offset=offset, max_bytes=max_bytes[partition], topic_id=partition.topic_id, log_start_offset=0
                ),
            )
            for partition, offset in offsets.items()
        ]
        results = self._replica_manager.read_from_log(params, infos, update_fetch_state=False)
        return dict(zip(offsets, [data for _, data in results], strict=True))

    def offset_metadata(self, key: TopicPartition, offset: int) -> LogOffsetMetadata:
        """Return the log position of an offset. Raises as `leader_partition`."""
        return _metadata(self.leader_partition(key).log, offset)

    def end_offset_metadata(self, key: TopicPartition, params: FetchParams) -> LogOffsetMetadata:
        """Return the log position of the end of readable records. Raises as `leader_partition`."""
        partition = self.leader_partition(key)
        return _metadata(partition.log, partition.fetch_end_offset(params.isolation))


def _metadata(log: PartitionLog, offset: int) -> LogOffsetMetadata:
    segments = log.segments
    base_offset = segments[0].base_offset
    for segment in reversed(segments):
        if segment.base_offset <= offset:
            base_offset = segment.base_offset
            break
    return LogOffsetMetadata(offset, base_offset, log.position(offset))


def uniform_max_bytes(
    request_max_bytes: int, partitions: Sequence[TopicIdPartition], acquired_count: int, rng: random.Random
) -> dict[TopicIdPartition, int]:
    """Divide a request's bytes among partitions, which are some of the `acquired_count` partitions being fetched.

    All get the same number, and a random one also the remainder. If there are fewer bytes than partitions, each byte
    goes to a different one. Raises ApiError with UNKNOWN_SERVER_ERROR, as Kafka does, if the limit is not positive.
    """
    if request_max_bytes <= 0:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Request max bytes must be greater than 0")
    count = len(partitions)
    if request_max_bytes < count:
        first = rng.randrange(count)
        return {
            partition: int((index - first) % count < request_max_bytes) for index, partition in enumerate(partitions)
        }
    shares = acquired_count if request_max_bytes >= acquired_count else count
    each, rest = divmod(request_max_bytes, shares)
    max_bytes = dict.fromkeys(partitions, each)
    if rest:
        max_bytes[partitions[rng.randrange(count)]] += rest
    return max_bytes

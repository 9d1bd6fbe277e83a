"""A fetch that waits for data; mirrors `kafka.server.DelayedFetch`.

It completes when one of these cases holds for any of its partitions:

* Case A: only the leader may serve the fetch, and this broker is no longer the leader
* Case B: the partition is no longer on this broker
* Case C: this broker no longer knows the partition
* Case D: the partition's log is offline
* Case E: the request's leader epoch is fenced or not known yet
* Case F: the fetch offset is beyond the end, after a truncation, or on an older segment than the end
* Case H: the fetcher's log diverges from this one, so the fetcher must truncate it

or when

* Case G: the partitions together have `min_bytes`

Records that a throttled follower does not get now count neither for a roll in case F nor for case G.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError
from broker_sim.runtime.delayed_request import DelayedRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim.log import PartitionLog
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.fetch_params import FetchParams, FetchPartition, FetchPartitionData
    from broker_sim.replica.partition import Partition


class DelayedFetch(DelayedRequest):
    """Waits until there are enough bytes or an error to return, or for `max_wait_ms`.

    `infos` is read again at each try, because a follower's session changes it in the meantime.
    """

    __slots__ = ("_complete", "_infos", "_is_follower_throttled", "_params", "_partitions")

    api = "Fetch"

    def __init__(
        self,
        params: FetchParams,
        infos: Iterable[tuple[TopicPartition, FetchPartition]],
        partitions: Mapping[TopicPartition, Partition],
        is_follower_throttled: Callable[[Partition, int], bool],
        complete: Callable[[], None],
    ) -> None:
        """`partitions` are those of this broker.

        `is_follower_throttled(partition, replica_id)` returns whether the follower now gets no records.
        """
        super().__init__(params.max_wait_ms, params.client_id)
        self._params = params
        self._infos = infos
        self._partitions = partitions
        self._is_follower_throttled = is_follower_throttled
        self._complete = complete

    def try_complete(self) -> bool:
        """Complete if one of the cases above holds."""
        if self._is_satisfied():
            return self.force_complete()
        return False

    def _is_satisfied(self) -> bool:
        """Whether one of the cases holds; a partition counts towards `min_bytes` up to its own `max_bytes`."""
        params = self._params
        accumulated_bytes = 0
        for topic_partition, fetch in self._infos:
            partition = self._partitions.get(topic_partition)
            if partition is None:  # Cases B, C, D
                return True
            try:
                available_bytes = self._available_bytes(partition, fetch)
            except ApiError:  # Cases A, E, and H with an epoch that this log does not know
                return True
            if available_bytes is None:  # Cases F, H
                return True
            accumulated_bytes += available_bytes
            if accumulated_bytes >= params.min_bytes:  # Case G; the other partitions do not matter
                return True
        return False

    def _available_bytes(self, partition: Partition, fetch: FetchPartition) -> int | None:
        """Return the bytes that the partition adds towards `min_bytes`; None if the fetch must be answered now.

        Raises `ApiError` in cases A, E, and in case H with an epoch that this log does not know.
        """
        params, log = self._params, partition.log
        if not (partition.is_leader and fetch.current_leader_epoch == partition.leader_epoch):
            partition.local_log(fetch.current_leader_epoch, params.fetch_only_leader)
        end_offset = partition.fetch_end_offset(params.isolation)
        offset = fetch.fetch_offset
        available_bytes = 0
        if offset > end_offset:
            if _is_beyond(log, offset, end_offset):  # Case F, truncated
                return None
        elif offset < end_offset and not (
            params.is_from_follower and self._is_follower_throttled(partition, params.replica_id)
        ):
            if _is_on_older_segment(log, offset, end_offset):  # Case F, rolled
                return None
            local_log = log.offsets.local_log
            available_bytes = min(local_log.position(end_offset) - local_log.position(offset), fetch.max_bytes)
        if fetch.last_fetched_epoch >= 0 and partition.diverging_epoch(fetch):  # Case H
            return None
        return available_bytes

    def on_expiration(self) -> None:
        """Do nothing: the response is whatever can be read now."""

    def on_complete(self) -> None:
        """Read again and send the response."""
        self._complete()


def _is_beyond(log: PartitionLog, offset: int, end_offset: int) -> bool:
    """Whether `offset` is in a later batch than `end_offset`, or beyond the log's end."""
    return offset > log.log_end_offset or log.position(offset) > log.position(end_offset)


def _is_on_older_segment(log: PartitionLog, offset: int, end_offset: int) -> bool:
    """Whether a segment begins between the two offsets."""
    segments = log.offsets.local_log.segments
    return len(segments) > 1 and any(offset < segment.base_offset <= end_offset for segment in segments)


def is_answered_now(params: FetchParams, results: Sequence[tuple[TopicPartition, FetchPartitionData]]) -> bool:
    """Whether a fetch with these results is answered without waiting."""
    bytes_readable = 0
    for _, data in results:
        bytes_readable += data.size_bytes
        if data.error_code or data.diverging_epoch is not None or data.preferred_read_replica >= 0:
            return True
    return params.max_wait_ms <= 0 or bytes_readable >= params.min_bytes

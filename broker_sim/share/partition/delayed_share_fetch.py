"""A share fetch that waits for records to acquire; mirrors `kafka.server.share.DelayedShareFetch`.

An attempt to complete has three steps:

1. Take the fetch lock of each share partition from which records may be acquired now. Share partitions that are being
   initialized, are locked by another fetch, or have the maximum of records in flight, are left out.
2. Look up the log position of the next fetch offset, which an earlier attempt may have cached.
3. Complete if a read failed or if the partitions have `min_bytes` in total; otherwise release the locks.

On completion it reads the partitions that are not yet read, acquires the records for the member, and releases the
locks. On expiration it repeats the first step and returns the records that can be acquired, usually none.

It is watched under each share partition, which triggers it when a record lock times out, the start offset moves, a
fetch lock is released, or the share partition is initialized or fenced; and under each partition, which triggers it
when the high watermark moves or this broker resigns as leader. Releases by members trigger it too, but before the
release is written: as in Kafka, no fetch is woken when the records become available.

Deliberate difference: there is no tiered storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.runtime.delayed_request import DelayedRequest
from broker_sim.share.partition.fetched_records import FetchedRecords
from broker_sim.share.partition.log_reader import uniform_max_bytes
from broker_sim.share.partition.share_fetch import SharePartitionData

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping

    from broker_sim.metadata.topic_partition import TopicIdPartition
    from broker_sim.replica import FetchPartitionData
    from broker_sim.share.partition.share_fetch import ShareFetch
    from broker_sim.share.partition.share_partition import SharePartition
    from broker_sim.share.partition.share_partitions import SharePartitions


class DelayedShareFetch(DelayedRequest):
    """Waits up to `max_wait_ms` until records can be acquired."""

    __slots__ = (
        "_acquired",
        "_fetch",
        "_last_round",
        "_partitions",
        "_read",
        "_reader",
        "_rng",
        "_served",
        "_waiting_fetches",
    )

    api = "ShareFetch"

    def __init__(
        self,
        fetch: ShareFetch,
        partitions: Mapping[TopicIdPartition, SharePartition],
        served: SharePartitions,
        rng: random.Random,
    ) -> None:
        """Fetch from `partitions`, which are some of the broker's `served` share partitions."""
        super().__init__(fetch.params.max_wait_ms, fetch.params.client_id)
        self._fetch = fetch
        self._partitions = partitions
        self._served = served
        self._reader = served.environment.reader
        self._waiting_fetches = served.environment.waiting_fetches
        self._rng = rng
        self._last_round = 0
        """Round of the last attempt; see `WaitingShareFetches.round`."""
        self._acquired: dict[TopicIdPartition, int] = {}
        """Fetch offsets of the partitions whose fetch locks are held on completion."""
        self._read: dict[TopicIdPartition, FetchPartitionData] = {}
        """Data of the partitions that the last attempt has read."""

    @property
    def error_code(self) -> ErrorCode | None:
        """The first partition error after completion, None before."""
        return self._fetch.first_error if self.is_completed() else None

    # -- attempts -------------------------------------------------------------------------------

    def try_complete(self) -> bool:
        """Complete if a read fails, or if `min_bytes` can be acquired."""
        last_round, self._last_round = self._last_round, self._waiting_fetches.round
        if last_round and last_round == self._last_round:
            return False
        offsets = self._acquirable_partitions()
        if not offsets:
            return False
        try:
            read = self._read_without_position(offsets)
            is_satisfied = any(data.error_code for data in read.values()) or self._is_min_bytes_satisfied(offsets)
        except ApiError:
            self._release_fetch_locks(offsets)
            return self.force_complete()
        if not is_satisfied:
            self._release_fetch_locks(offsets)
            return False
        self._acquired, self._read = offsets, read
        return self.force_complete()

    def _acquirable_partitions(self) -> dict[TopicIdPartition, int]:
        """Take the available fetch locks; return the fetch offsets by partition."""
        offsets: dict[TopicIdPartition, int] = {}
        for partition, share_partition in self._partitions.items():
            if share_partition.maybe_acquire_fetch_lock(self):
                if share_partition.can_acquire_records():
                    offsets[partition] = share_partition.records.next_fetch_offset()
                else:
                    share_partition.release_fetch_lock(self)
        return offsets

    def _read_without_position(
        self, offsets: Mapping[TopicIdPartition, int]
    ) -> dict[TopicIdPartition, FetchPartitionData]:
        """Read the partitions whose fetch offset has no cached log position, and cache it."""
        missing = {
            partition: offset
            for partition, offset in offsets.items()
            if self._cached_metadata_offset(partition) != offset
        }
        read = self._read_from_log(missing, len(offsets))
        for partition, data in read.items():
            if not data.error_code:
                self._partitions[partition].fetch_offset_metadata = self._reader.offset_metadata(
                    partition.topic_partition, offsets[partition]
                )
        return read

    def _cached_metadata_offset(self, partition: TopicIdPartition) -> int:
        metadata = self._partitions[partition].fetch_offset_metadata
        return -1 if metadata is None else metadata.offset

    def _read_from_log(
        self, offsets: Mapping[TopicIdPartition, int], acquired_count: int
    ) -> dict[TopicIdPartition, FetchPartitionData]:
        """Read the partitions without an error. Raises ApiError."""
        fetch = self._fetch
        readable = {partition: offset for partition, offset in offsets.items() if not fetch.is_erroneous(partition)}
        if not readable:
            return {}
        return self._reader.read(fetch.params, readable, self._max_bytes(offsets, acquired_count))

    def _max_bytes(self, partitions: Iterable[TopicIdPartition], acquired_count: int) -> dict[TopicIdPartition, int]:
        max_bytes = self._fetch.params.max_bytes
        return uniform_max_bytes(max_bytes, list(partitions), acquired_count, self._rng)

    def _is_min_bytes_satisfied(self, offsets: Mapping[TopicIdPartition, int]) -> bool:
        """Whether the partitions have `min_bytes`, assuming that all records can be acquired."""
        params = self._fetch.params
        max_bytes = self._max_bytes(offsets, len(offsets))
        accumulated_bytes = 0
        for partition, offset in offsets.items():
            try:
                end = self._reader.end_offset_metadata(partition.topic_partition, params)
            except ApiError as error:
                self._fetch.add_erroneous([partition], error)
                self._served.handle_error(self._partitions[partition].key, error)
                continue
            start = self._partitions[partition].fetch_offset_metadata
            if start is None or start.offset != offset:
                continue
            if offset > end.offset:
                return True
            if offset < end.offset:
                if start.segment_base_offset < end.segment_base_offset:
                    return True
                available_bytes = end.position - start.position
                accumulated_bytes += min(available_bytes, max_bytes[partition])
        return accumulated_bytes >= params.min_bytes

    # -- completion -----------------------------------------------------------------------------

    def on_expiration(self) -> None:
        """Do nothing: `on_complete` returns the records that can be acquired now."""

    def on_complete(self) -> None:
        """Read the log, acquire the records for the member, and answer."""
        offsets = self._acquired or self._acquirable_partitions()
        if not offsets:
            self._fetch.maybe_complete({})
            return
        try:
            missing = {partition: offset for partition, offset in offsets.items() if partition not in self._read}
            read = {**self._read_from_log(missing, len(offsets)), **self._read}
            answers = self._acquire(offsets, read)
        except ApiError as error:
            for partition in offsets:
                self._served.handle_error(self._partitions[partition].key, error)
            self._fetch.add_erroneous(offsets, error)
            answers = {}
        try:
            self._fetch.maybe_complete(answers)
        finally:
            self._release_fetch_locks(offsets)
            for partition in offsets:
                self._waiting_fetches.announce_to_all_groups(self._partitions[partition].key)

    def _acquire(
        self, offsets: Mapping[TopicIdPartition, int], read: Mapping[TopicIdPartition, FetchPartitionData]
    ) -> dict[TopicIdPartition, SharePartitionData]:
        """Acquire the read records for the member, up to its maximum."""
        answers: dict[TopicIdPartition, SharePartitionData] = {}
        limits = self._fetch.limits
        for partition, data in read.items():
            share_partition = self._partitions[partition]
            if data.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
                if self._follow_log_start(partition, share_partition):
                    answers[partition] = SharePartitionData()
                continue
            if data.error_code:
                answers[partition] = SharePartitionData(data.error_code)
                continue
            fetched = FetchedRecords(
                data.records,
                data.aborted_transactions,
                last_offset=share_partition.last_acquirable_offset(offsets[partition], limits.max_records),
            )
            acquired = share_partition.acquire(limits, offsets[partition], fetched)
            if not acquired:
                answers[partition] = SharePartitionData()
                continue
            records = fetched.slice(acquired[0].first_offset, acquired[-1].last_offset)
            answers[partition] = SharePartitionData(records=records, acquired=acquired)
            count = sum(acquired_range.record_count for acquired_range in acquired)
            limits = limits._replace(max_records=limits.max_records - count)
        return answers

    def _follow_log_start(self, partition: TopicIdPartition, share_partition: SharePartition) -> bool:
        """Move the share partition's start offset to the log start offset; return False if that cannot be read."""
        try:
            share_partition.log_start_moved(share_partition.log_start_offset())
        except ApiError as error:
            self._fetch.add_erroneous([partition], error)
            self._served.handle_error(self._partitions[partition].key, error)
            return False
        return True

    def _release_fetch_locks(self, partitions: Iterable[TopicIdPartition]) -> None:
        for partition in partitions:
            self._partitions[partition].release_fetch_lock(self)

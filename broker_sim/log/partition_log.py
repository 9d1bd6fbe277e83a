"""The log of one partition, in memory; mirrors ``UnifiedLog``.

A batch is checked by its header and CRC, gets its offset and leader epoch in the one copy that is
made of it, and is from then on handed out by reference.

The object is the partition's "disk" as well: it outlives the broker's process.

    the process is killed          `recover`: watermarks from their checkpoints, producers from
                                   their last snapshot and the batches behind it
    the machine loses its power    `lose_unflushed` first: nothing behind `flush_point` survives
    the broker shuts down          `close`, then `recover`

Deliberate differences: all of a broker's state lives on one scheduler, so there is no lock; tiered
storage and compaction are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.append_info import (
    EMPTY_APPEND,
    AppendOrigin,
    FetchDataInfo,
    LogAppendInfo,
    TimestampAndOffset,
)
from broker_sim.log.log_offsets import LogOffsets
from broker_sim.log.offset_lookup import fetch_offset_by_timestamp
from broker_sim.log.retention import count_deletable, deletion_rules
from broker_sim.log.validator import LogValidator, read_replicated_batches
from broker_sim.protocol.record_batch import NO_PRODUCER_ID, NO_TIMESTAMP, BatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim.config import TopicConfig
    from broker_sim.log.transaction_index import AbortedTxn
    from broker_sim.metadata.topic_partition import TopicPartition
    from purgatory import Clock

__all__ = ["DEFAULT_PRODUCER_ID_EXPIRATION_MS", "PartitionLog"]

DEFAULT_PRODUCER_ID_EXPIRATION_MS: Final = 86_400_000
_CLIENT: Final = AppendOrigin.CLIENT


class PartitionLog(LogOffsets):
    """Appends, reads, truncation and deletion; every method runs on the broker's scheduler."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: TopicConfig,
        clock: Clock,
        *,
        producer_id_expiration_ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS,
    ) -> None:
        super().__init__(topic_partition, clock.wall_clock_ms(), producer_id_expiration_ms)
        self._clock = clock
        self.update_config(config)

    def update_config(self, config: TopicConfig) -> None:
        """Take a changed configuration of the topic; it holds from the next append on."""
        self.config = config
        self._validator = LogValidator(self.topic_partition, config)
        self._segment_size_bytes = config.segment_size_bytes
        self._segment_ms = config.segment_ms

    # -- appending ------------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: bytes | memoryview,
        leader_epoch: int,
        *,
        origin: str = _CLIENT,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Append one batch at the log's end in that epoch; a producer's retry is not appended again.

        ``transaction_version`` is that of an end transaction marker.
        Raises `ApiError` and leaves the records as they were: what `LogValidator.validate` raises,
        RECORD_LIST_TOO_LARGE for more than a segment, and by the producer's state
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE or
        TRANSACTION_COORDINATOR_FENCED.
        """
        now_ms = self._clock.wall_clock_ms()
        valid = self._validator.validate(records, now_ms, origin)
        header = valid.header
        base_offset = self._local_log.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        max_timestamp = valid.max_timestamp
        # As in Kafka, epoch and segment begin here even if the producer's state refuses the batch.
        self.leader_epoch_cache.assign(leader_epoch, base_offset)
        self._check_fits_segment(header.size_bytes)
        self._maybe_roll(header.size_bytes, base_offset, last_offset, max_timestamp, now_ms)
        if header.producer_id != NO_PRODUCER_ID:
            if origin == _CLIENT:
                duplicate = self._find_duplicate(header)
                if duplicate is not None:
                    return duplicate
            self.producer_state.check(valid.batch, header, base_offset, origin, transaction_version)
        batch = valid.place(base_offset, leader_epoch)
        self._append(batch, header, base_offset, max_timestamp, now_ms)
        return LogAppendInfo(
            base_offset,
            last_offset,
            max_timestamp,
            now_ms if valid.log_append_time else NO_TIMESTAMP,
            self.log_start_offset,
            header.records_count,
            len(batch),
            False,
        )

    def append_as_follower(
        self,
        records: bytes | memoryview | Iterable[bytes | memoryview],
        leader_epoch: int | None = None,
    ) -> LogAppendInfo:
        """Append batches with the offsets and epochs that the leader gave them.

        Each buffer begins with a whole batch; a part of one at its end is left out, and so is
        everything from the first batch on that is newer than ``leader_epoch``, the fetch's epoch.
        A batch that is `bytes` of its own is kept without a copy.
        Raises `ApiError` and leaves the log as it was: CORRUPT_MESSAGE, RECORD_LIST_TOO_LARGE,
        INVALID_RECORD for another format or a malformed transaction marker,
        `UnexpectedAppendOffsetError` for a batch that begins before the log's end,
        `OffsetsOutOfOrderError`.
        """
        batches = read_replicated_batches(
            (records,) if isinstance(records, bytes | memoryview) else records,
            self.topic_partition,
            self.log_end_offset,
            leader_epoch,
        )
        if not batches:
            return EMPTY_APPEND
        now_ms = self._clock.wall_clock_ms()
        first_offset, last_offset = batches[0][0].base_offset, batches[-1][0].last_offset
        max_timestamp, size, records_count = NO_TIMESTAMP, 0, 0
        for header, batch in batches:
            max_timestamp = max(max_timestamp, header.max_timestamp)
            size += len(batch)
            records_count += header.records_count
        self._check_fits_segment(size)
        self._maybe_roll(size, first_offset, last_offset, max_timestamp, now_ms)
        for header, batch in batches:
            if header.partition_leader_epoch >= 0:
                self.leader_epoch_cache.assign(header.partition_leader_epoch, header.base_offset)
            self._append(batch, header, header.base_offset, header.max_timestamp, now_ms)
        return LogAppendInfo(
            first_offset,
            last_offset,
            max_timestamp,
            NO_TIMESTAMP,
            self.log_start_offset,
            records_count,
            size,
            False,
        )

    def _check_fits_segment(self, size: int) -> None:
        if size > self._segment_size_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size} bytes in append to partition "
                f"{self.topic_partition}, which exceeds the maximum configured segment size of "
                f"{self._segment_size_bytes}.",
            )

    def _find_duplicate(self, header: BatchHeader) -> LogAppendInfo | None:
        """Answer a retry with the batch that is in the log, as Kafka does with its time stamp too."""
        batch = self.producer_state.find_duplicate_batch(header)
        if batch is None:
            return None
        return LogAppendInfo(
            batch.first_offset,
            batch.last_offset,
            batch.timestamp,
            batch.timestamp,
            self.log_start_offset,
            header.records_count,
            header.size_bytes,
            True,
        )

    def _append(
        self,
        batch: bytes,
        header: BatchHeader,
        base_offset: int,
        max_timestamp: int,
        now_ms: int,
    ) -> None:
        end_offset = base_offset + header.last_offset_delta + 1
        self._local_log.append(batch, end_offset, max_timestamp, now_ms)
        if header.producer_id != NO_PRODUCER_ID:
            self.producer_state.update(batch, header, base_offset, max_timestamp)
        self.producer_state.map_end_offset = end_offset

    def _maybe_roll(
        self, size: int, base_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> None:
        """Begin a new segment where an append, which is never divided, does not belong to this one."""
        segment = self._local_log.active_segment
        if segment.should_roll(
            size, last_offset, max_timestamp, now_ms, self._segment_size_bytes, self._segment_ms
        ):
            self.roll(base_offset)

    def roll(self, base_offset: int | None = None) -> None:
        """Begin a new segment; what is before it goes to disk with a snapshot of the producers."""
        if base_offset is None:
            base_offset = self.log_end_offset
        self._local_log.roll(base_offset, self._clock.wall_clock_ms())
        self.producer_state.map_end_offset = base_offset
        self.producer_state.take_snapshot()
        self.flush_point = max(self.flush_point, base_offset)

    def remove_expired_producers(self) -> None:
        """Forget the producers that were silent for ``producer.id.expiration.ms``."""
        self.producer_state.remove_expired_producers(self._clock.wall_clock_ms())

    # -- reading --------------------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        upper_bound_offset: int | None = None,
        min_one_message: bool = False,
    ) -> FetchDataInfo:
        """Return the bytes from the batch that holds ``start_offset`` on, as from a file.

        At most ``max_bytes``, so that the last batch may be cut, but with ``min_one_message`` the
        first one whole; of one segment only; nothing from the batch that holds
        ``upper_bound_offset`` (default: the log's end) on. Nothing is copied.
        Raises OFFSET_OUT_OF_RANGE before the log's start and after its end.
        """
        end_offset = self._local_log.log_end_offset
        if start_offset < self.log_start_offset or start_offset > end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {start_offset} for partition "
                f"{self.topic_partition}, but we only have log segments in the range "
                f"{self.log_start_offset} to {end_offset}.",
            )
        if upper_bound_offset is None:
            upper_bound_offset = end_offset
        return self._local_log.read(start_offset, max_bytes, upper_bound_offset, min_one_message)

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn]:
        """Return the aborted transactions that a read of [start, upper bound) may have touched."""
        return self.producer_state.collect_aborted_transactions(start_offset, upper_bound_offset)

    def fetch_offset_by_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """Return the first record at or after a time (ms), or what a special time stands for.

        -1 the log's end, -2 and -4 its start, -3 the record with the largest time stamp, -5
        nothing (there are no tiers). None if no record is that new. Only the batch that may hold
        the record is decompressed; raises `ApiError` as `iter_records`.
        """
        return fetch_offset_by_timestamp(
            self._local_log, self.leader_epoch_cache, self.log_start_offset, timestamp
        )

    # -- truncation and deletion ----------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Drop the batch that holds ``offset`` and all that follow; True if there were any.

        The log then ends at ``offset``. Raises ValueError below zero.
        """
        if offset < 0:
            raise ValueError(f"Cannot truncate {self.topic_partition} to offset {offset}")
        if offset >= self.log_end_offset:
            self.leader_epoch_cache.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        for segment in self._local_log.truncate_to(offset, self._clock.wall_clock_ms()):
            self.producer_state.remove_snapshot(segment.base_offset)
        self.leader_epoch_cache.truncate_from_end(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.flush_point = min(self.flush_point, offset)
        self._rebuild_producer_state()
        self.update_high_watermark(self.high_watermark)
        return True

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop everything and go on at ``offset``; the high watermark follows."""
        self._local_log.truncate_fully_and_start_at(offset, self._clock.wall_clock_ms())
        self.leader_epoch_cache.clear()
        self.producer_state.truncate_fully_and_start_at(offset)
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        self.flush_point = offset
        self.update_high_watermark(offset)

    def delete_old_segments(self) -> int:
        """Delete whole segments below the log start, and by size and age; return how many.

        The log start moves to the first segment that stays. With the policy ``compact`` alone only
        what is below the log start goes.
        """
        count = 0
        for rule in deletion_rules(self, self.config, self._clock.wall_clock_ms()):
            deletable = count_deletable(
                self.segments, self.high_watermark, self.log_end_offset, rule
            )
            if deletable:
                self._delete_oldest(deletable)
            count += deletable
        return count

    def _delete_oldest(self, count: int) -> None:
        if count == len(self.segments):
            self.roll()
        self.maybe_increment_log_start_offset(self.segments[count].base_offset)
        for segment in self.segments[:count]:
            self.producer_state.remove_snapshot(segment.base_offset)
        self._local_log.remove_oldest(count)

    # -- what survives --------------------------------------------------------------------------

    def flush(self) -> None:
        """Write everything to disk, so that a loss of power spares it."""
        self.flush_point = self.log_end_offset

    def close(self) -> None:
        """Shut down cleanly: flush, take a snapshot of the producers, write the checkpoints."""
        self.flush()
        self.producer_state.take_snapshot()
        self.checkpoint_high_watermark()
        self.checkpoint_log_start_offset()

    def lose_unflushed(self) -> None:
        """Lose what was not flushed, as the machine does without power; `recover` must follow."""
        flushed = self.flush_point
        for segment in self._local_log.truncate_to(flushed, self._clock.wall_clock_ms()):
            self.producer_state.remove_snapshot(segment.base_offset)

    def recover(self) -> None:
        """Open the log again after its process has gone, however it went; mirrors ``LogLoader``."""
        self.log_start_offset = max(
            self._checkpointed_log_start_offset, self.segments[0].base_offset
        )
        self.leader_epoch_cache.truncate_from_end(self.log_end_offset)
        self.leader_epoch_cache.truncate_from_start(self.log_start_offset)
        self.producer_state.forget()
        self._rebuild_producer_state()
        self.update_high_watermark(self._checkpointed_high_watermark)

    def _rebuild_producer_state(self) -> None:
        self.producer_state.truncate_and_reload(
            self.log_start_offset,
            self.log_end_offset,
            self._clock.wall_clock_ms(),
            self._batches_from,
        )

    def _batches_from(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        return self._local_log.batches_from(max(offset, self.log_start_offset))

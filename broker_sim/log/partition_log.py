"""The log of one partition; mirrors `UnifiedLog`.

As in Kafka, the parts of a log are separate objects, which the log keeps consistent:

    LocalLog              the segments, and with them the log end offset
    LogOffsets            log start offset, last stable offset, high watermark
    LeaderEpochCache      the start offset of each leader epoch
    ProducerStateManager  idempotent producers and transactions
    LogStorage            memory or files

The object outlives the broker's process, and with files in its `LogStorage` the data outlives the
object. After a kill, `recover` takes the high watermark and the log start from their last checkpoints,
and the producers from their last snapshot and the batches that follow it.

Deliberate differences: everything runs on one loop, so there is no lock; there is no tiered storage.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.config.definition import MAX_LONG
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.append_info import EMPTY_APPEND, AppendOrigin, FetchDataInfo, LogAppendInfo, TimestampAndOffset
from broker_sim.log.leader_epoch_cache import LeaderEpochCache
from broker_sim.log.local_log import LocalLog
from broker_sim.log.log_offsets import LogOffsets
from broker_sim.log.memory import ReplicaMemory, unlimited_memory
from broker_sim.log.offset_lookup import fetch_offset_by_timestamp, search_at_once
from broker_sim.log.producer_state_manager import ProducerStateManager, ProducerStateManagerConfig
from broker_sim.log.retention import deletable_segments
from broker_sim.log.storage import TIME_ENTRY_BYTES, LogStorage, MemoryStorage
from broker_sim.log.validator import LogValidator, read_replicated_batches
from broker_sim.protocol.record_batch import NO_PRODUCER_ID, BatchHeader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.config import TopicConfig
    from broker_sim.log.offset_lookup import Search
    from broker_sim.log.producer_state_entry import VerificationGuard
    from broker_sim.log.segment import LogSegment
    from broker_sim.log.transaction_index import AbortedTxn
    from broker_sim.log.validator import Appendable, ValidatedRecords
    from broker_sim.metadata.topic_partition import TopicPartition

_CLIENT: Final = AppendOrigin.CLIENT


def _do_nothing(_log: PartitionLog, _offset: int) -> None:
    pass


class PartitionLog:
    """Appends, reads, truncates and deletes the records of one partition."""

    __slots__ = (
        "_flush_messages",
        "_index_may_be_full",
        "_local_log",
        "_segment_ms",
        "_segment_size_bytes",
        "_validator",
        "clock",
        "config",
        "last_flush_ms",
        "leader_epoch_cache",
        "memory",
        "offsets",
        "on_truncated",
        "producer_state",
        "storage",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: TopicConfig,
        clock: Clock,
        *,
        producers: ProducerStateManagerConfig | None = None,
        memory: ReplicaMemory | None = None,
        moved: dict[LogOffsets, None] | None = None,
        storage: LogStorage | None = None,
    ) -> None:
        """Open the log in `storage` (default: memory); its offsets add themselves to `moved` when they move."""
        self.topic_partition = topic_partition
        self.clock = clock
        self.storage = storage = storage or MemoryStorage()
        self.memory = memory = memory or unlimited_memory(topic_partition)
        self._local_log = LocalLog(clock.wall_clock_ms(), memory, config.index_interval_bytes, storage)
        self.leader_epoch_cache = LeaderEpochCache(storage.load_leader_epochs(), storage.write_leader_epochs)
        self.producer_state = ProducerStateManager(topic_partition, producers or ProducerStateManagerConfig(), storage)
        self.offsets = LogOffsets(
            topic_partition,
            self._local_log,
            self.leader_epoch_cache,
            self.producer_state,
            storage,
            memory,
            {} if moved is None else moved,
        )
        self.last_flush_ms = clock.now_ms()
        """Time in ms at which the log was last flushed to disk."""
        self.on_truncated: Callable[[PartitionLog, int], object] = _do_nothing
        """Called with the log and the offset that it was truncated to."""
        self.update_config(config)

    def __repr__(self) -> str:
        names = ("log_start_offset", "last_stable_offset", "high_watermark", "log_end_offset")
        offsets = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f"{type(self).__name__}({self.topic_partition}, {offsets})"

    @property
    def log_start_offset(self) -> int:
        """The first offset that a client may read."""
        return self.offsets.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is decided and replicated."""
        return self.offsets.last_stable_offset

    @property
    def high_watermark(self) -> int:
        """The offset below which every in-sync replica has all records."""
        return self.offsets.high_watermark

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._local_log.log_end_offset

    def update_config(self, config: TopicConfig) -> None:
        """Apply a changed configuration of the topic, from the next append on."""
        self.config = config
        self._validator = LogValidator(self.topic_partition, config)
        self._segment_size_bytes = config.segment_size_bytes
        self._local_log.index_interval_bytes = config.index_interval_bytes
        self.storage.file_delete_delay_ms = config.file_delete_delay_ms
        self._flush_messages = config.flush_messages if self.storage.is_persistent else MAX_LONG
        entries = self._segment_size_bytes // max(config.index_interval_bytes, 1)
        self._index_may_be_full = entries >= config.segment_index_bytes // TIME_ENTRY_BYTES - 1
        self._set_segment_ms()

    def _set_segment_ms(self) -> None:
        """Set the age at which the active segment is rolled, less its random jitter.

        As in Kafka each segment has a jitter of its own, so that not all partitions roll at once; here
        it is the same in each run.
        """
        config = self.config
        self._segment_ms = config.max_segment_ms
        jitter_ms = min(config.segment_jitter_ms, config.max_segment_ms)
        if jitter_ms > 0:
            active = self._local_log.active_segment.base_offset
            chance = random.Random(f"{self.topic_partition} {active}")
            self._segment_ms -= chance.randrange(jitter_ms)

    # -- appending ------------------------------------------------------------------------------

    def validation_effort(self, records: memoryview) -> float:
        """Return an estimate of the work to validate the records; see `LogValidator.effort`."""
        return self._validator.effort(records, self.clock.wall_clock_ms())

    def validation(self, records: memoryview) -> Callable[[], ValidatedRecords]:
        """Return a function that validates a client's records; any thread may call it."""
        return partial(self._validator.validate_beside, records, self.clock.wall_clock_ms())

    def append_as_leader(
        self,
        records: Appendable,
        leader_epoch: int,
        origin: str = _CLIENT,
        transaction_version: int = 0,
        verification_guard: VerificationGuard | None = None,
    ) -> LogAppendInfo:
        """Append one batch at the log's end in that epoch; a producer's retry is not appended again.

        `transaction_version` is for end transaction markers; `verification_guard` is the guard that
        `ProducerStateManager.maybe_start_verification` returned before the request to the coordinator.
        Raises `ApiError` and leaves the records as they were: the errors of `LogValidator.validate` and
        `ProducerStateManager.check`, RECORD_LIST_TOO_LARGE for more than a segment, and
        KAFKA_STORAGE_ERROR if memory is full.
        """
        now_ms = self.clock.wall_clock_ms()
        valid = self._validator.validate(records, now_ms, origin)
        header = valid.header
        size_bytes = len(valid.batch)
        base_offset = self._local_log.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        info = LogAppendInfo(base_offset, last_offset, valid.max_timestamp, size_bytes)
        if valid.log_append_time:
            info.log_append_time_ms = now_ms
        # As in Kafka, epoch and segment begin here even if the producer's state refuses the batch.
        self.leader_epoch_cache.assign(leader_epoch, base_offset)
        self._maybe_roll(info, now_ms)
        info.log_start_offset = self.offsets.log_start_offset
        if header.producer_id != NO_PRODUCER_ID:
            if origin == _CLIENT:
                duplicate = self.producer_state.find_duplicate_batch(header)
                if duplicate is not None:
                    return LogAppendInfo.of_duplicate(duplicate, info)
            self.producer_state.check(valid.batch, header, base_offset, origin, transaction_version, verification_guard)
        if origin == _CLIENT:
            self.memory.check_room(size_bytes)
        batch = valid.place(base_offset, leader_epoch)
        self._append(batch, header, base_offset, valid.max_timestamp, now_ms)
        return info

    def append_as_follower(
        self, records: bytes | memoryview | Iterable[bytes | memoryview], leader_epoch: int | None = None
    ) -> LogAppendInfo:
        """Append batches with the offsets and epochs assigned by the leader.

        Each buffer begins with a whole batch. An incomplete batch at its end is left out, and so are the
        first batch with an epoch above `leader_epoch`, the fetch's epoch, and all that follow.
        A buffer of `bytes` with a single batch is kept without a copy.
        Raises `ApiError` and leaves the log as it was: the errors of `read_replicated_batches`, or
        RECORD_LIST_TOO_LARGE.
        """
        batches = read_replicated_batches(records, self.topic_partition, self._local_log.log_end_offset, leader_epoch)
        if not batches:
            return EMPTY_APPEND
        now_ms = self.clock.wall_clock_ms()
        info = LogAppendInfo.of_replicated(batches)
        info.log_start_offset = self.offsets.log_start_offset
        self._maybe_roll(info, now_ms)
        for header, batch in batches:
            if header.partition_leader_epoch >= 0:
                self.leader_epoch_cache.assign(header.partition_leader_epoch, header.base_offset)
            self._append(batch, header, header.base_offset, header.max_timestamp, now_ms)
        return info

    def _append(self, batch: bytes, header: BatchHeader, base_offset: int, max_timestamp: int, now_ms: int) -> None:
        end_offset = base_offset + header.last_offset_delta + 1
        self._local_log.append(batch, end_offset, max_timestamp, now_ms)
        self.offsets.note_moved()
        if header.producer_id != NO_PRODUCER_ID:
            self.producer_state.update(batch, header, base_offset, max_timestamp)
        self.producer_state.map_end_offset = end_offset
        if end_offset - self.storage.recovery_point >= self._flush_messages:
            self.flush_batches()

    def _maybe_roll(self, append: LogAppendInfo, now_ms: int) -> None:
        """Begin a new segment if the append, which is never split, does not fit into the active one.

        Raises RECORD_LIST_TOO_LARGE for an append that no segment can hold.
        """
        max_bytes = self._segment_size_bytes
        if append.valid_bytes > max_bytes:
            raise append.too_large_for_segment(self.topic_partition, max_bytes)
        active = self._local_log.active_segment
        if active.should_roll(append, now_ms, max_bytes, self._segment_ms) or (
            self._index_may_be_full and active.is_index_full(self.config.segment_index_bytes)
        ):
            self.roll(append.first_offset)
            if self.memory.is_tight:
                self.delete_old_segments()

    def roll(self, base_offset: int | None = None) -> None:
        """Begin a new segment, at the log's end by default, with a snapshot of the producers."""
        if base_offset is None:
            base_offset = self.log_end_offset
        self.flush()
        self._local_log.roll(base_offset, self.clock.wall_clock_ms())
        self._set_segment_ms()
        self.producer_state.map_end_offset = base_offset
        self.producer_state.take_snapshot()

    # -- reading --------------------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        upper_bound_offset: int | None = None,
        min_one_message: bool = False,
        as_view: bool = False,
    ) -> FetchDataInfo:
        """Return the bytes from the batch that holds `start_offset` on, as from a file.

        Reads at most `max_bytes` of one segment, so the last batch may be incomplete; with `min_one_message` the
        first one is whole. The read ends before `upper_bound_offset`'s batch (default: log's end).
        With `as_view`, a large read of a log in files is returned as a view of the file.
        Raises OFFSET_OUT_OF_RANGE before the log's start and after its end.
        """
        end_offset = self._local_log.log_end_offset
        if start_offset < self.offsets.log_start_offset or start_offset > end_offset:
            raise self._outside_log(start_offset)
        if upper_bound_offset is None:
            upper_bound_offset = end_offset
        return self._local_log.read(start_offset, max_bytes, upper_bound_offset, min_one_message, as_view)

    def _outside_log(self, offset: int) -> ApiError:
        return ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {offset} for partition {self.topic_partition}, but we only"
            f" have log segments in the range {self.log_start_offset} to {self.log_end_offset}.",
        )

    @property
    def segments(self) -> Sequence[LogSegment]:
        """The segments, the oldest first; for reading only."""
        return self._local_log.segments

    @property
    def size_bytes(self) -> int:
        """The bytes of all batches in the log."""
        return self._local_log.size_bytes

    def position(self, offset: int) -> int:
        """Return the bytes before the batch that holds `offset`, deleted segments included."""
        return self._local_log.position(offset)

    def offset_after(self, offset: int, max_bytes: int) -> int:
        """Return the offset after a read of `max_bytes`, but at least one batch, from `offset` on."""
        if offset >= self.log_end_offset:
            return self.log_end_offset
        return self._local_log.fetch_upper_bound_offset(offset, max(1, max_bytes))

    def aborted_transactions(self, start_offset: int, size_bytes: int) -> list[AbortedTxn]:
        """Return the aborted transactions of a read of `size_bytes`, and possibly later ones."""
        transaction_index = self.producer_state.transaction_index
        if not transaction_index or start_offset >= self.last_stable_offset:
            return []
        end_offset = self._local_log.fetch_upper_bound_offset(start_offset, size_bytes)
        return transaction_index.collect(start_offset, end_offset)

    def fetch_offset_by_timestamp(
        self, timestamp: int, search: Search = search_at_once, from_offset: int = 0
    ) -> TimestampAndOffset | None:
        """Return the first record at or after a time (ms); see `offset_lookup`."""
        log, epochs = self._local_log, self.leader_epoch_cache
        return fetch_offset_by_timestamp(log, epochs, self.log_start_offset, timestamp, search, from_offset)

    # -- truncation and deletion ----------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Drop the batch that holds `offset` and all that follow; return whether there were any.

        The log then ends at `offset`. Raises ValueError below zero.
        """
        if offset < 0:
            raise ValueError(f"Cannot truncate {self.topic_partition} to offset {offset}")
        if offset >= self.log_end_offset:
            self.leader_epoch_cache.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        for segment in self._local_log.truncate_to(offset, self.clock.wall_clock_ms()):
            self.producer_state.remove_snapshot(segment.base_offset)
        self.leader_epoch_cache.truncate_from_end(offset)
        self.offsets.set_log_start_offset(min(self.log_start_offset, offset))
        self.rebuild_producer_state()
        self.offsets.update_high_watermark(self.high_watermark)
        self.on_truncated(self, offset)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and continue at `offset`, which becomes start, high watermark and end."""
        self._local_log.truncate_fully_and_start_at(offset, self.clock.wall_clock_ms())
        self.leader_epoch_cache.clear()
        self.producer_state.truncate_fully_and_start_at(offset)
        self.offsets.set_log_start_offset(offset)
        self.offsets.update_high_watermark(offset)
        self.on_truncated(self, offset)

    @property
    def may_have_old_segments(self) -> bool:
        """Whether retention could delete anything; False for a log without records."""
        return self._local_log.size_bytes > 0 or len(self._local_log.segments) > 1

    def delete_old_segments(self) -> int:
        """Delete the segments that retention allows; return their number."""
        deleted = 0
        for count in deletable_segments(self.config, self._local_log, self.offsets, self.clock.wall_clock_ms()):
            if count:
                self.delete_oldest_segments(count)
            deleted += count
        return deleted

    def delete_oldest_segments(self, count: int) -> None:
        """Delete the `count` oldest segments, possibly the active one too; the log start moves past them."""
        if count == len(self.segments):
            self.roll()
        self.offsets.maybe_increment_log_start_offset(self.segments[count].base_offset)
        for segment in self.segments[:count]:
            self.producer_state.remove_snapshot(segment.base_offset)
        self._local_log.remove_oldest(count)

    def replace_segments(self, cleaned: LogSegment, replaced: Sequence[LogSegment]) -> None:
        """Replace segments by a cleaned one, which begins at the first one's base offset."""
        for segment in replaced[1:]:
            self.producer_state.remove_snapshot(segment.base_offset)
        start, end = replaced[0].base_offset, replaced[-1].end_offset
        aborted = self.producer_state.transaction_index.between(start, end)
        self._local_log.replace_segments(cleaned, replaced, aborted)

    # -- checkpoints and recovery ---------------------------------------------------------------

    def flush_batches(self) -> None:
        """Flush all batches to disk, for `flush.messages` and `flush.ms`; does nothing in memory."""
        self.last_flush_ms = self.clock.now_ms()
        active = self._local_log.active_segment
        self.storage.flush(active.base_offset, self.log_end_offset)

    def flush(self) -> None:
        """Flush the active segment and its indexes to disk; does nothing in memory."""
        self.last_flush_ms = self.clock.now_ms()
        if self.storage.is_persistent:
            start, end = self._local_log.active_segment.base_offset, self.log_end_offset
            if self.storage.is_sealed(start, end):
                return
            self._local_log.seal_active(self.producer_state.transaction_index.between(start, end))

    def close(self) -> None:
        """Shut down cleanly, so that `recover` restores the current state."""
        self.flush()
        self.producer_state.take_snapshot()
        self.offsets.checkpoint_high_watermark()
        self.offsets.checkpoint_log_start_offset()

    def recover(self) -> None:
        """Reopen the log after its broker has stopped; mirrors `LogLoader`.

        All parts are made consistent with the segments and the last checkpoints. A recovery point beyond the log
        end, from before a truncation, would leave new records unflushed, so it is lowered. A log that ends before
        its checkpointed start has lost its records: it restarts there, empty. Expired producers are dropped. A log
        that was shut down cleanly and has no snapshot at all begins without producers, as in Kafka.
        """
        storage, offsets, producer_state = self.storage, self.offsets, self.producer_state
        if self.log_end_offset < storage.log_start_offset:
            self.truncate_fully_and_start_at(storage.log_start_offset)
            return
        storage.recovery_point = min(storage.recovery_point, self.log_end_offset)
        offsets.log_start_offset = max(storage.log_start_offset, self.segments[0].base_offset)
        self.leader_epoch_cache.truncate_from_end(self.log_end_offset)
        self.leader_epoch_cache.truncate_from_start(offsets.log_start_offset)
        producer_state.forget()
        if storage.begins_without_producers:
            producer_state.map_end_offset = self.log_end_offset
        self.rebuild_producer_state()
        producer_state.remove_expired_producers(self.clock.wall_clock_ms())
        self._local_log.restore_aborted(producer_state.transaction_index.between)
        offsets.update_high_watermark(storage.high_watermark)

    def rebuild_producer_state(self) -> None:
        """Rebuild the producers and transactions from the log, from its start to its end."""
        self.producer_state.truncate_and_reload(
            self.log_start_offset, self.log_end_offset, self.clock.wall_clock_ms(), self._local_log.batches_from
        )

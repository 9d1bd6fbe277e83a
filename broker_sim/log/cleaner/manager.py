"""The choice of the next log to clean and of its cleanable part; mirrors `LogCleanerManager` and `LogToClean`.

The first dirty offset of each partition, between the log's clean tail and its dirty head, outlives the
broker's process; on disk it is in `cleaner-offset-checkpoint`. A failed partition is cleaned again after a restart of
the broker. Not cleaned are

    A  the active segment
    B  the segment with the last stable offset, and those behind it
    C  the first segment with a record younger than `min.compaction.lag.ms`, and those behind it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.log.partition_log import PartitionLog
    from broker_sim.log.segment import LogSegment
    from broker_sim.metadata.topic_partition import TopicPartition

event_log = get_logger(__name__)


class LogToClean:
    """A log, and its dirty part that may be cleaned: [first dirty offset, first uncleanable offset)."""

    __slots__ = (
        "clean_bytes",
        "cleanable_bytes",
        "compaction_delay_ms",
        "first_dirty_offset",
        "first_uncleanable_offset",
        "log",
    )

    def __init__(self, log: PartitionLog, first_dirty_offset: int, now_ms: int) -> None:
        """`now_ms` is the time of the wall clock."""
        self.log = log
        self.first_dirty_offset = first_dirty_offset
        uncleanable = _first_uncleanable_segment(log, first_dirty_offset, now_ms)
        self.first_uncleanable_offset = max(uncleanable.base_offset, first_dirty_offset)
        self.compaction_delay_ms = _max_compaction_delay_ms(log, first_dirty_offset, now_ms)
        """Time in ms by which the oldest dirty record exceeds `max.compaction.lag.ms`."""
        self.clean_bytes = sum(
            segment.size_bytes for segment in log.segments if segment.base_offset < first_dirty_offset
        )
        self.cleanable_bytes = sum(segment.size_bytes for segment in self.dirty_segments())

    @property
    def cleanable_ratio(self) -> float:
        """The share of the dirty bytes, from 0 to 1."""
        total_bytes = self.total_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0

    @property
    def total_bytes(self) -> int:
        """The bytes of all segments that a cleaning would read."""
        return self.clean_bytes + self.cleanable_bytes

    @property
    def must_be_cleaned(self) -> bool:
        """Whether the dirty part is large enough, or too old."""
        if self.compaction_delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.cleanable_ratio > self.log.config.min_cleanable_dirty_ratio

    def dirty_segments(self) -> list[LogSegment]:
        """Return the segments of the dirty part that may be cleaned."""
        if self.first_dirty_offset >= self.first_uncleanable_offset:
            return []
        return [
            segment
            for segment in _from(self.log.segments, self.first_dirty_offset)
            if segment.base_offset < self.first_uncleanable_offset
        ]


def _from(segments: Sequence[LogSegment], offset: int) -> Sequence[LogSegment]:
    """Return the segments from the one that holds `offset` on."""
    first = 0
    for index, segment in enumerate(segments):
        if segment.base_offset <= offset:
            first = index
    return segments[first:]


def _first_uncleanable_segment(log: PartitionLog, first_dirty_offset: int, now_ms: int) -> LogSegment:
    """Return the first segment that may not be cleaned, by the cases A to C."""
    uncleanable = _from(log.segments, log.last_stable_offset)[0]
    min_lag_ms = log.config.min_compaction_lag_ms
    if min_lag_ms > 0:
        for segment in _from(log.segments, first_dirty_offset):
            if segment.base_offset >= uncleanable.base_offset:
                break
            if segment.largest_timestamp > now_ms - min_lag_ms:
                return segment
    return uncleanable


def _max_compaction_delay_ms(log: PartitionLog, first_dirty_offset: int, now_ms: int) -> int:
    """Return the time in ms by which the oldest dirty segment, except the active one, exceeds the maximum lag."""
    dirty = _from(log.segments, first_dirty_offset)
    timestamps = [segment.first_batch_timestamp for segment in dirty if segment is not log.segments[-1]]
    oldest = min((timestamp for timestamp in timestamps if timestamp > 0), default=None)
    if oldest is None:
        return 0
    return max(0, now_ms - log.config.max_compaction_lag_ms - oldest)


class LogCleanerManager:
    """First dirty offsets, the cleanings in progress, and the partitions that cannot be cleaned."""

    def __init__(
        self,
        clock: Clock,
        first_dirty_offsets: Mapping[TopicPartition, int] | None = None,
        checkpoint: Callable[[Mapping[TopicPartition, int]], object] | None = None,
    ) -> None:
        """Begin with the offsets of the last checkpoint; `checkpoint(offsets)` stores changed ones."""
        self._clock = clock
        self._first_dirty_offsets = dict(first_dirty_offsets or {})
        self._checkpoint = checkpoint
        self._in_progress: dict[TopicPartition, LogToClean] = {}
        self._uncleanable: set[TopicPartition] = set()
        self.dirtiest_log_cleanable_ratio = 0.0
        """The cleanable ratio of the dirtiest log at the last run."""
        self.last_run_ms = clock.now_ms()
        """The time of the last search for a log to clean."""
        self.max_compaction_delay_ms = 0
        """The longest delay of a log beyond `max.compaction.lag.ms` at the last run."""

    @property
    def first_dirty_offsets(self) -> Mapping[TopicPartition, int]:
        """The start of the next cleaning by partition; for reading only."""
        return self._first_dirty_offsets

    @property
    def uncleanable_partitions(self) -> frozenset[TopicPartition]:
        """The partitions in which a cleaning has failed."""
        return frozenset(self._uncleanable)

    def uncleanable_bytes(self, logs: Iterable[PartitionLog]) -> int:
        """Return the dirty bytes of the logs in which a cleaning has failed."""
        now_ms = self._clock.wall_clock_ms()
        return sum(
            LogToClean(log, self._first_dirty_offset(log), now_ms).cleanable_bytes
            for log in logs
            if log.topic_partition in self._uncleanable
        )

    def restart(self) -> None:
        """Drop cleanings in progress and uncleanable partitions, which end with the broker's process."""
        self._in_progress.clear()
        self._uncleanable.clear()

    def _update(self, topic_partition: TopicPartition, offset: int | None) -> None:
        """Set or remove a first dirty offset, and checkpoint them if that changes something."""
        if self._first_dirty_offsets.get(topic_partition) == offset:
            return
        if offset is None:
            del self._first_dirty_offsets[topic_partition]
        else:
            self._first_dirty_offsets[topic_partition] = offset
        if self._checkpoint is not None:
            self._checkpoint(self._first_dirty_offsets)

    def grab_filthiest_compacted_log(self, logs: Iterable[PartitionLog]) -> LogToClean | None:
        """Return the log with the largest dirty ratio among those that must be cleaned; None if there is none.

        Its cleaning is then in progress, until `done_cleaning` or `abort_cleaning`.
        """
        self.last_run_ms = self._clock.now_ms()
        now_ms = self._clock.wall_clock_ms()
        candidates = [self._look_at(log, now_ms) for log in logs if self._may_be_cleaned(log)]
        dirty = [cleanable for cleanable in candidates if cleanable is not None and cleanable.total_bytes > 0]
        self.dirtiest_log_cleanable_ratio = max((cleanable.cleanable_ratio for cleanable in dirty), default=0.0)
        self.max_compaction_delay_ms = max((cleanable.compaction_delay_ms for cleanable in dirty), default=0)
        filthiest = max(
            (cleanable for cleanable in dirty if cleanable.must_be_cleaned),
            key=lambda cleanable: cleanable.cleanable_ratio,
            default=None,
        )
        if filthiest is not None:
            self._in_progress[filthiest.log.topic_partition] = filthiest
        return filthiest

    def _look_at(self, log: PartitionLog, now_ms: int) -> LogToClean | None:
        """Return the dirty part of the log, None if it cannot be determined."""
        try:
            first_dirty_offset = self._first_dirty_offset(log)
            if first_dirty_offset != self._first_dirty_offsets.get(log.topic_partition, first_dirty_offset):
                self._reset_first_dirty_offset(log, first_dirty_offset)
            return LogToClean(log, first_dirty_offset, now_ms)
        except Exception as error:  # noqa: BLE001 - the other logs must be cleaned
            self.cleaning_failed(log.topic_partition, error)
            return None

    def deletable_logs(self, logs: Iterable[PartitionLog]) -> list[PartitionLog]:
        """Return the compacted logs that are not being cleaned: the cleaner deletes old segments too."""
        return [log for log in logs if self._may_be_cleaned(log)]

    def is_in_progress(self, cleanable: LogToClean) -> bool:
        """Whether this cleaning may continue, because it was not aborted."""
        return self._in_progress.get(cleanable.log.topic_partition) is cleanable

    def done_cleaning(self, cleanable: LogToClean, end_offset: int) -> None:
        """End a cleaning; the next one begins at `end_offset`."""
        topic_partition = cleanable.log.topic_partition
        del self._in_progress[topic_partition]
        self._update(topic_partition, max(end_offset, cleanable.first_dirty_offset))

    def abort_cleaning(self, topic_partition: TopicPartition) -> None:
        """End the partition's cleaning, if there is one; its unfinished segments are lost."""
        self._in_progress.pop(topic_partition, None)

    def cleaning_failed(self, topic_partition: TopicPartition, error: Exception) -> None:
        """End the partition's cleaning after an error, and log it; it is uncleanable from now on.

        KAFKA_STORAGE_ERROR does not make it uncleanable: as in Kafka, the partition goes offline.
        """
        if isinstance(error, ApiError) and error.error_code is ErrorCode.KAFKA_STORAGE_ERROR:
            self.abort_cleaning(topic_partition)
            return
        self.mark_uncleanable(topic_partition)
        event_log.bind(self._clock).warning(
            "partition_uncleanable",
            partition=str(topic_partition),
            why=str(error) if isinstance(error, ApiError) else repr(error),
        )

    def mark_uncleanable(self, topic_partition: TopicPartition) -> None:
        """Exclude the partition from cleaning until the broker is restarted."""
        self._in_progress.pop(topic_partition, None)
        self._uncleanable.add(topic_partition)

    def truncated(self, topic_partition: TopicPartition, offset: int) -> None:
        """Record a truncation: the partition's cleaning ends, and later offsets are dirty."""
        self.abort_cleaning(topic_partition)
        if self._first_dirty_offsets.get(topic_partition, 0) > offset:
            self._update(topic_partition, offset)

    def forget(self, topic_partition: TopicPartition) -> None:
        """Drop a deleted partition."""
        self.abort_cleaning(topic_partition)
        self._update(topic_partition, None)
        self._uncleanable.discard(topic_partition)

    def _may_be_cleaned(self, log: PartitionLog) -> bool:
        return (
            log.config.is_compacted
            and log.topic_partition not in self._in_progress
            and log.topic_partition not in self._uncleanable
        )

    def _first_dirty_offset(self, log: PartitionLog) -> int:
        """Return the stored offset, or the log's start if the offset is outside of the log."""
        start_offset = log.log_start_offset
        offset = self._first_dirty_offsets.get(log.topic_partition, start_offset)
        return offset if start_offset <= offset <= log.log_end_offset else start_offset

    def _reset_first_dirty_offset(self, log: PartitionLog, offset: int) -> None:
        """Replace the stored offset, which is outside of the log."""
        old_offset = self._first_dirty_offsets[log.topic_partition]
        if old_offset > log.log_end_offset or not log.config.is_deleted_by_age:
            event_log.bind(self._clock).warning(
                "first_dirty_offset_reset",
                partition=str(log.topic_partition),
                first_dirty_offset=old_offset,
                log_start_offset=log.log_start_offset,
                log_end_offset=log.log_end_offset,
            )
        self._update(log.topic_partition, offset)

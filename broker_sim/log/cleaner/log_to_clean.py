"""Which part of a log may be cleaned; mirrors `LogToClean` and `LogCleanerManager.cleanableOffsets`.

Not cleaned are

    A  the active segment
    B  the segment with the last stable offset, and what follows it
    C  the first segment, and what follows it, with a record younger than `min.compaction.lag.ms`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.log.partition_log import PartitionLog
    from broker_sim.log.segment import LogSegment


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
        """For how long a record has been in the dirty part beyond `max.compaction.lag.ms`."""
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
    """Return by how much the oldest dirty segment, not the active one, is beyond the largest lag."""
    dirty = _from(log.segments, first_dirty_offset)
    timestamps = [segment.first_batch_timestamp for segment in dirty if segment is not log.segments[-1]]
    oldest = min((timestamp for timestamp in timestamps if timestamp > 0), default=None)
    if oldest is None:
        return 0
    return max(0, now_ms - log.config.max_compaction_lag_ms - oldest)

"""The segments that retention deletes; mirrors `UnifiedLog.deleteOldSegments`.

    start   all records of the segment are below the log start offset
    size    the log without the segment still has `retention.bytes`
    age     the newest record of the segment is older than `retention.ms`

With `cleanup.policy=compact` alone, only the first rule applies. Each rule deletes segments from the
oldest on, up to the first that it keeps. No rule deletes a segment with records at or above the high
watermark, so that the log start never passes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.config import TopicConfig
    from broker_sim.log.local_log import LocalLog
    from broker_sim.log.log_offsets import LogOffsets
    from broker_sim.log.segment import LogSegment

DeletionRule: TypeAlias = "Callable[[LogSegment, int | None], bool]"
"""Whether a segment may be deleted; the second argument is the next segment's base offset, if any."""


def deletable_segments(config: TopicConfig, local_log: LocalLog, offsets: LogOffsets, now_ms: int) -> Iterator[int]:
    """Yield for each rule, in Kafka's order, the number of oldest segments that it deletes.

    The caller must delete them before it takes the next number.
    """
    for rule in _deletion_rules(config, local_log, offsets, now_ms):
        yield _count_deletable(local_log, offsets, rule)


def _deletion_rules(
    config: TopicConfig, local_log: LocalLog, offsets: LogOffsets, now_ms: int
) -> Iterator[DeletionRule]:
    def is_below_log_start(_segment: LogSegment, next_base_offset: int | None) -> bool:
        return next_base_offset is not None and next_base_offset <= offsets.log_start_offset

    yield is_below_log_start
    if not config.is_deleted_by_age:
        return
    if 0 <= config.retention_bytes <= local_log.size_bytes:
        surplus_bytes = local_log.size_bytes - config.retention_bytes

        def is_surplus(segment: LogSegment, _next_base_offset: int | None) -> bool:
            nonlocal surplus_bytes
            if segment.size_bytes > surplus_bytes:
                return False
            surplus_bytes -= segment.size_bytes
            return True

        yield is_surplus
    if config.retention_ms >= 0:
        yield lambda segment, _next: now_ms - segment.largest_timestamp > config.retention_ms


def _count_deletable(local_log: LocalLog, offsets: LogOffsets, rule: DeletionRule) -> int:
    """Return the number of oldest segments that `rule` deletes; never an empty last one."""
    segments = local_log.segments
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        next_base_offset = None if is_last else segments[index + 1].base_offset
        end_offset = local_log.log_end_offset if next_base_offset is None else next_base_offset
        if offsets.high_watermark < end_offset or not rule(segment, next_base_offset) or (is_last and not segment):
            return index
    return len(segments)

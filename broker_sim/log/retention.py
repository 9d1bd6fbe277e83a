"""Which segments may go, and why; mirrors the ``delete…BreachedSegments`` of ``UnifiedLog``.

    start   all its records are below the log start offset
    size    the log without it still has ``retention.bytes``
    age     its newest record is older than ``retention.ms``

Each rule takes segments from the oldest on and ends at the first that stays. None takes a segment
with records at or above the high watermark, so that the log start never passes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.config import TopicConfig
    from broker_sim.log.log_offsets import LogOffsets
    from broker_sim.log.segment import LogSegment

__all__ = ["DeletionRule", "count_deletable", "deletion_rules"]


DeletionRule: TypeAlias = "Callable[[LogSegment, int | None], bool]"
"""Whether a segment may go, given the offset at which the next one begins (None: there is none)."""


def deletion_rules(log: LogOffsets, config: TopicConfig, now_ms: int) -> Iterator[DeletionRule]:
    """Yield the rules in Kafka's order; each is to be applied before the next one is asked for."""

    def is_below_log_start(_segment: LogSegment, next_base_offset: int | None) -> bool:
        return next_base_offset is not None and next_base_offset <= log.log_start_offset

    yield is_below_log_start
    if not config.is_deleted_by_age:
        return
    if 0 <= config.retention_bytes <= log.size_bytes:
        surplus_bytes = log.size_bytes - config.retention_bytes

        def is_surplus(segment: LogSegment, _next_base_offset: int | None) -> bool:
            nonlocal surplus_bytes
            if segment.size_bytes > surplus_bytes:
                return False
            surplus_bytes -= segment.size_bytes
            return True

        yield is_surplus
    if config.retention_ms >= 0:
        yield lambda segment, _next: now_ms - segment.largest_timestamp > config.retention_ms


def count_deletable(
    segments: Sequence[LogSegment], high_watermark: int, log_end_offset: int, rule: DeletionRule
) -> int:
    """Return how many of the oldest segments may go by ``rule``; never an empty last one."""
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        next_base_offset = None if is_last else segments[index + 1].base_offset
        end_offset = log_end_offset if next_base_offset is None else next_base_offset
        if (
            high_watermark < end_offset
            or not rule(segment, next_base_offset)
            or (is_last and not segment)
        ):
            return index
    return len(segments)

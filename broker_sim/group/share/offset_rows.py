"""What DescribeShareGroupOffsets tells of a partition; mirrors `computeShareGroupLagAndBuildResponse`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS
from broker_sim.protocol import messages
from broker_sim.share.share_state import UNINITIALIZED_DELIVERY_COMPLETE_COUNT, UNINITIALIZED_START_OFFSET

if TYPE_CHECKING:
    from broker_sim.group.environment import LatestOffset
    from broker_sim.share.share_state import StateSummary

Row = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition


def has_lag(summary: StateSummary) -> bool:
    """Whether it is known how far the group has come."""
    return (
        not summary.error_code
        and summary.start_offset != UNINITIALIZED_START_OFFSET
        and summary.delivery_complete_count != UNINITIALIZED_DELIVERY_COMPLETE_COUNT
    )


def offsets_row(
    summary: StateSummary, number: int, latest: LatestOffset | None
) -> messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition:
    """Return the row of a partition; without a state it is told as one without offsets."""
    if latest is not None and latest.error_code:
        text = ERROR_TEXTS.get(latest.error_code)
        return Row(number, error_code=latest.error_code, error_message=text)
    if summary.error_code:
        return Row(number, UNINITIALIZED_START_OFFSET)
    row = Row(number, summary.start_offset, summary.leader_epoch)
    if latest is not None and has_lag(summary):
        row.lag = _wrapped(latest.offset - summary.start_offset - summary.delivery_complete_count)
    return row


def _wrapped(number: int) -> int:
    """Return a sum as Java's `long` has it: any offset may be altered to, and beyond 63 bits it wraps around."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)

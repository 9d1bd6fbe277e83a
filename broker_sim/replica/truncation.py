"""Where a follower's log and its leader's part; mirrors `getOffsetTruncationState`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.log import PartitionLog


def truncation_offset(log: PartitionLog, leader_epoch: int, leader_end_offset: int) -> int:
    """Return the offset from which on the leader, whose epoch ends there, does not have the log."""
    end_offset = log.log_end_offset
    epoch, epoch_end_offset = log.leader_epoch_cache.end_offset_for(leader_epoch, end_offset)
    if epoch < 0:
        return min(leader_end_offset, end_offset)
    if epoch != leader_epoch:
        return min(epoch_end_offset, end_offset)
    return min(epoch_end_offset, leader_end_offset, end_offset)

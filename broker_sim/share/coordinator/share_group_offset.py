"""The persisted state of one share partition; mirrors `ShareGroupOffset`."""

from __future__ import annotations

from typing import NamedTuple

from broker_sim.share.coordinator.state_batches import combine_state_batches
from broker_sim.share.share_state import (
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_EPOCH,
    UNINITIALIZED_START_OFFSET,
    StateBatch,
    WrittenState,
)

NO_TIMESTAMP = 0
NO_CHANGE = -1
"""Start offset or epoch of a write that leaves it unchanged."""


class ShareGroupOffset(NamedTuple):
    """The state in a snapshot, or the changes in an update.

    Three epochs: `snapshot_epoch` counts the snapshots, `state_epoch` is the group epoch of the last initialization,
    and `leader_epoch` is that of the partition leader that last read the state.
    """

    snapshot_epoch: int = 0
    state_epoch: int = UNINITIALIZED_EPOCH
    leader_epoch: int = UNINITIALIZED_EPOCH
    start_offset: int = UNINITIALIZED_START_OFFSET
    delivery_complete_count: int = UNINITIALIZED_DELIVERY_COMPLETE_COUNT
    """Number of completed records after the start offset; -1 if unknown."""
    state_batches: tuple[StateBatch, ...] = ()
    create_timestamp_ms: int = NO_TIMESTAMP
    """Wall-clock time at which the state was created; 0 in an update."""
    write_timestamp_ms: int = NO_TIMESTAMP
    """Wall-clock time of the last snapshot."""

    @classmethod
    def initialized(cls, snapshot_epoch: int, state_epoch: int, start_offset: int, now_ms: int) -> ShareGroupOffset:
        """Return the state of a new share partition."""
        is_open = start_offset == UNINITIALIZED_START_OFFSET
        return cls(
            snapshot_epoch=snapshot_epoch,
            state_epoch=state_epoch,
            start_offset=start_offset,
            delivery_complete_count=UNINITIALIZED_DELIVERY_COMPLETE_COUNT if is_open else 0,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )

    def monotonic(self, write: WrittenState) -> WrittenState:
        """Return the write with a start offset and a delivery complete count that never decrease, as in Kafka 4.4.

        The count may decrease if the start offset increases.
        """
        count = write.delivery_complete_count
        if write.start_offset == self.start_offset:
            count = max(count, self.delivery_complete_count)
        elif write.start_offset < self.start_offset:
            count = self.delivery_complete_count
        start_offset = max(write.start_offset, self.start_offset)
        return write._replace(start_offset=start_offset, delivery_complete_count=count)

    def snapshot_of(self, write: WrittenState, leader_epoch: int, now_ms: int) -> ShareGroupOffset:
        """Return the next snapshot, with the changes of a write."""
        start_offset = self.start_offset
        if write.start_offset != NO_CHANGE:
            start_offset = write.start_offset
        return self._replace(
            snapshot_epoch=self.snapshot_epoch + 1,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=combine_state_batches(self.state_batches, write.state_batches, start_offset),
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )

    def update_of(self, write: WrittenState, leader_epoch: int) -> ShareGroupOffset:
        """Return an update of this snapshot, with only the changes of a write."""
        return ShareGroupOffset(
            snapshot_epoch=self.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=combine_state_batches((), write.state_batches, write.start_offset),
        )

    def merged(self, update: ShareGroupOffset) -> ShareGroupOffset:
        """Return the state after an update."""
        start_offset, leader_epoch = self.start_offset, self.leader_epoch
        if update.start_offset != NO_CHANGE:
            start_offset = update.start_offset
        if update.leader_epoch != NO_CHANGE:
            leader_epoch = update.leader_epoch
        return self._replace(
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            state_batches=combine_state_batches(self.state_batches, update.state_batches, start_offset),
        )

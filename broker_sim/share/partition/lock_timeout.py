"""What becomes of records whose lock has ended; mirrors `SharePartition.releaseAcquisitionLockOnTimeout`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.share.partition.record_state import RecordState
from broker_sim.share.partition.state_update import StateUpdate

if TYPE_CHECKING:
    from broker_sim.share.partition.acquisition_lock import AcquisitionLocks
    from broker_sim.share.partition.in_flight_records import InFlightRecords
    from broker_sim.share.partition.in_flight_state import InFlightState


def time_out(
    records: InFlightRecords, locks: AcquisitionLocks, first_offset: int, last_offset: int, max_delivery_count: int
) -> list[StateUpdate]:
    """Take acquired records of that range from their member; return what has changed.

    They are available again. Those that were delivered often enough, and those before the start offset, are archived.
    """
    updates: list[StateUpdate] = []
    floor = records.batches.floor(first_offset)
    if floor is None:
        return updates
    for batch in records.batches.between(floor.first_offset, last_offset):
        whole = batch.batch_state
        if (
            whole is not None
            and whole.state is RecordState.ACQUIRED
            and records.is_start_within(batch.first_offset, batch.last_offset)
        ):
            batch.split(locks)
        if batch.batch_state is not None:
            _time_out_alike(
                records, batch.first_offset, batch.last_offset, batch.batch_state, max_delivery_count, updates
            )
            continue
        for first, last, state in batch.parts_in(first_offset, last_offset):
            if state.state is RecordState.ACQUIRED:
                for start, end in records.divided(first, last):
                    own = batch.cut_out(start, end, locks)
                    _time_out_alike(records, start, end, own, max_delivery_count, updates)
        batch.merge(first_offset, last_offset)
    return updates


def _time_out_alike(
    records: InFlightRecords,
    first_offset: int,
    last_offset: int,
    state: InFlightState,
    max_delivery_count: int,
    updates: list[StateUpdate],
) -> None:
    """Do it for records that stand alike."""
    if state.state is not RecordState.ACQUIRED:
        return
    is_before_start = last_offset < records.start_offset
    new_state = RecordState.ARCHIVED if is_before_start else RecordState.AVAILABLE
    if not state.try_update_state(new_state, max_delivery_count):
        return
    updates.append(StateUpdate.of(first_offset, last_offset, state))
    state.end_lock()
    if state.is_terminal:
        records.delivery_complete_count += records.count_in(first_offset, last_offset)
    else:
        records.finds_next_fetch_offset = True

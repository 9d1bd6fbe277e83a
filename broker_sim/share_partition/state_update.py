"""A change of state that is being written; mirrors `PersisterBatch`."""

from __future__ import annotations

from typing import NamedTuple

from broker_sim.share.persister import StateBatch
from broker_sim.share_partition.in_flight_state import (
    InFlightState,  # noqa: TC001 - native code looks the types of fields up
)

__all__ = ["StateUpdate"]


class StateUpdate(NamedTuple):
    """The changed state, and what is written of it."""

    state: InFlightState
    written: StateBatch

    @classmethod
    def of(cls, first_offset: int, last_offset: int, state: InFlightState) -> StateUpdate:
        """Return the update of records that have this state now."""
        batch = StateBatch(first_offset, last_offset, int(state.state), state.delivery_count)
        return cls(state, batch)

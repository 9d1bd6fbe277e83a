"""A change of state that is being written; mirrors `PersisterBatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.share.partition.in_flight_state import InFlightState  # noqa: TC001 - native code looks the types of fields up
from broker_sim.share.share_state import StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable


class StateUpdate(NamedTuple):
    """The changed state, and what is written of it."""

    state: InFlightState
    written: StateBatch

    @classmethod
    def of(cls, first_offset: int, last_offset: int, state: InFlightState) -> StateUpdate:
        """Return the update of records that have this state now."""
        batch = StateBatch(first_offset, last_offset, int(state.state), state.delivery_count)
        return cls(state, batch)


def joined(batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    """Return batches, which are in order, those next to each other that stand alike as one.

    The share coordinator would do the same.
    """
    found: list[StateBatch] = []
    for batch in batches:
        before = found[-1] if found else None
        if before is not None and before.last_offset + 1 == batch.first_offset and before[2:] == batch[2:]:
            found[-1] = before._replace(last_offset=batch.last_offset)
        else:
            found.append(batch)
    return tuple(found)

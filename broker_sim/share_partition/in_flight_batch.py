"""Records next to each other, with one state for all or one for each; mirrors `InFlightBatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.share_partition.in_flight_state import EMPTY_MEMBER_ID, InFlightState
from broker_sim.share_partition.record_state import RecordState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.share_partition.acquisition_lock import AcquisitionLocks

__all__ = ["InFlightBatch"]


class InFlightBatch:
    """The records from `first_offset` to `last_offset`.

    `batch_state` is the state of all of them until they differ. Then it is None, and `offset_states` has the
    state of each by its offset, in order.
    """

    __slots__ = ("batch_state", "first_offset", "last_offset", "offset_states")

    def __init__(self, first_offset: int, last_offset: int, batch_state: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.batch_state: InFlightState | None = batch_state
        self.offset_states: dict[int, InFlightState] = {}

    def __repr__(self) -> str:
        return f"InFlightBatch({self.first_offset}-{self.last_offset}, {self.batch_state})"

    @property
    def record_count(self) -> int:
        """The number of its offsets."""
        return self.last_offset - self.first_offset + 1

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether all of it is in that range."""
        return first_offset <= self.first_offset and self.last_offset <= last_offset

    def state_at(self, offset: int) -> InFlightState:
        """Return the state of the record at the offset."""
        return self.batch_state or self.offset_states[offset]

    def states_in(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, InFlightState]]:
        """Yield offset and state of each record of that range, of a batch that was split."""
        states = self.offset_states
        for offset in range(
            max(first_offset, self.first_offset), min(last_offset, self.last_offset) + 1
        ):
            yield offset, states[offset]

    def parts(self) -> Iterator[tuple[int, int, InFlightState]]:
        """Yield first offset, last offset and state of the whole batch, or of each of its records."""
        if self.batch_state is not None:
            yield self.first_offset, self.last_offset, self.batch_state
        else:
            for offset, state in self.offset_states.items():
                yield offset, offset, state

    def split(self, locks: AcquisitionLocks) -> None:
        """Give each record a state of its own, with a lock that ends when that of the batch would have."""
        whole = self.batch_state
        if whole is None:
            return
        for offset in range(self.first_offset, self.last_offset + 1):
            lock = None if whole.lock is None else locks.lock_one_of(whole.lock, offset)
            self.offset_states[offset] = InFlightState(
                whole.state, whole.delivery_count, whole.member_id, lock
            )
        whole.end_lock()
        self.batch_state = None

    def split_after(self, last_acquired: int, locks: AcquisitionLocks) -> None:
        """Let the member have only the records up to `last_acquired` of a batch that it has just acquired."""
        whole = self.batch_state
        assert whole is not None
        for offset in range(self.first_offset, self.last_offset + 1):
            if offset <= last_acquired:
                state = InFlightState(
                    whole.state,
                    whole.delivery_count,
                    whole.member_id,
                    locks.lock(whole.member_id, offset, offset),
                )
            else:
                state = InFlightState(
                    RecordState.AVAILABLE, whole.delivery_count - 1, EMPTY_MEMBER_ID
                )
            self.offset_states[offset] = state
        self.batch_state = None

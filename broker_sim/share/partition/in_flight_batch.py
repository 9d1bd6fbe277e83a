"""A batch of records in flight, with one state for all or several states; mirrors `InFlightBatch`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from broker_sim.share.partition.in_flight_state import EMPTY_MEMBER_ID, InFlightState
from broker_sim.share.partition.record_state import RecordState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.share.partition.acquisition_lock import AcquisitionLocks

    Part = tuple[int, int, InFlightState]


class InFlightBatch:
    """The records from `first_offset` to `last_offset`.

    `batch_state` is the state of all records until they differ. Then it is None, and the batch is split into parts, one
    for each range of records with the same state:

        offsets         0              4          7    9
        whole           |------------ ACQUIRED --------|
        parts           |- ACKNOWLEDGED|- ACQUIRED|-AV-|

    Deliberate difference: Kafka then keeps a state for each record. A batch may have, or claim to have, a million
    records, and a part costs the same whatever its size.
    """

    __slots__ = ("_first_offsets", "_states", "batch_state", "first_offset", "last_offset")

    def __init__(self, first_offset: int, last_offset: int, batch_state: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.batch_state: InFlightState | None = batch_state
        self._first_offsets: list[int] = []
        """First offsets of the parts; empty if the batch is not split."""
        self._states: list[InFlightState] = []

    def __repr__(self) -> str:
        return f"InFlightBatch({self.first_offset}-{self.last_offset}, {self.batch_state})"

    @property
    def record_count(self) -> int:
        """Number of offsets in the batch."""
        return self.last_offset - self.first_offset + 1

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether the complete batch is in that range."""
        return first_offset <= self.first_offset and self.last_offset <= last_offset

    def state_at(self, offset: int) -> InFlightState:
        """Return the state of the record at the offset."""
        return self.batch_state or self._states[self._index(offset)]

    def _index(self, offset: int) -> int:
        return bisect_right(self._first_offsets, offset) - 1

    def _last_offset(self, index: int) -> int:
        following = index + 1
        if following < len(self._first_offsets):
            return self._first_offsets[following] - 1
        return self.last_offset

    def parts(self) -> Iterator[Part]:
        """Yield first offset, last offset and state of each part, or of the whole batch if it is not split."""
        if self.batch_state is not None:
            yield self.first_offset, self.last_offset, self.batch_state
            return
        for index, state in enumerate(self._states):
            yield self._first_offsets[index], self._last_offset(index), state

    def parts_in(self, first_offset: int, last_offset: int) -> list[Part]:
        """Return the parts of a split batch in that range, clipped to it."""
        first_offset = max(first_offset, self.first_offset)
        last_offset = min(last_offset, self.last_offset)
        if first_offset > last_offset:
            return []
        start = self._index(first_offset)
        return [
            (
                max(self._first_offsets[index], first_offset),
                min(self._last_offset(index), last_offset),
                self._states[index],
            )
            for index in range(start, self._index(last_offset) + 1)
        ]

    # -- parts ----------------------------------------------------------------------------------

    def split(self, locks: AcquisitionLocks) -> None:
        """Split the batch, at first into one part with the state of all records.

        As in Kafka, a change of the whole batch that is still being written does not apply to the part.
        """
        whole = self.batch_state
        if whole is None:
            return
        lock = None if whole.lock is None else locks.renewed(whole.lock)
        self._first_offsets = [self.first_offset]
        self._states = [InFlightState(whole.state, whole.delivery_count, whole.member_id, lock)]
        whole.lock = None
        self.batch_state = None

    def split_after(self, last_acquired: int, locks: AcquisitionLocks) -> None:
        """Split a batch that was just acquired: records after `last_acquired` become available again."""
        whole = self.batch_state
        assert whole is not None
        whole.lock = locks.lock(whole.member_id, self.first_offset, last_acquired)
        rest = InFlightState(RecordState.AVAILABLE, whole.delivery_count - 1, EMPTY_MEMBER_ID)
        self._first_offsets = [self.first_offset, last_acquired + 1]
        self._states = [whole, rest]
        self.batch_state = None

    def cut_out(self, first_offset: int, last_offset: int, locks: AcquisitionLocks) -> InFlightState:
        """Make a part of exactly these records, which must have the same state; return its state."""
        self._cut(first_offset, locks)
        self._cut(last_offset + 1, locks)
        return self._states[self._index(first_offset)]

    def _cut(self, offset: int, locks: AcquisitionLocks) -> None:
        """Split the part that contains the offset, so that a part begins there."""
        index = self._index(offset)
        if self._first_offsets[index] != offset and offset <= self.last_offset:
            self._first_offsets.insert(index + 1, offset)
            self._states.insert(index + 1, self._states[index].cut_off(offset, locks))

    def merge(self, first_offset: int, last_offset: int) -> None:
        """Join equal parts inside and next to that range."""
        if self.batch_state is not None:
            return
        start = max(bisect_left(self._first_offsets, first_offset) - 1, 0)
        end = bisect_right(self._first_offsets, last_offset + 1)
        first_offsets: list[int] = []
        states: list[InFlightState] = []
        for index in range(start, end):
            state = self._states[index]
            if states and states[-1].can_take_over(state):
                states[-1].take_over(state)
            else:
                first_offsets.append(self._first_offsets[index])
                states.append(state)
        self._first_offsets[start:end] = first_offsets
        self._states[start:end] = states

    def forget_before(self, offset: int) -> None:
        """Drop the parts before the one that begins at the offset, except the first: their records are completed."""
        index = self._index(offset)
        del self._first_offsets[1:index], self._states[1:index]

"""The delivery state of a record or batch; mirrors `InFlightState`.

A member's acknowledgement changes the state at once. When the write has succeeded or failed,
`complete_state_transition` keeps the change or rolls it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.share.partition.record_state import TERMINAL_STATES, RecordState

if TYPE_CHECKING:
    from broker_sim.share.partition.acquisition_lock import AcquisitionLocks, AcquisitionLockTimerTask
    from broker_sim.share.partition.record_state import DeliveryLimit

EMPTY_MEMBER_ID: Final = ""
"""Member id of a record that no member has acquired."""


class InFlightState:
    """State, delivery count, acquiring member and lock."""

    __slots__ = ("_before", "_is_permanently_archived", "delivery_count", "lock", "member_id", "parts_cut_off", "state")

    def __init__(
        self,
        state: RecordState,
        delivery_count: int,
        member_id: str = EMPTY_MEMBER_ID,
        lock: AcquisitionLockTimerTask | None = None,
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock = lock
        """The member's acquisition lock; None while the record is not acquired."""
        self._before: tuple[RecordState, str, int] | None = None
        """State, member and delivery limit before the change that is being written."""
        self._is_permanently_archived = False
        self.parts_cut_off: tuple[InFlightState, ...] = ()
        """Parts that were split off while a change was being written; it completes for all of them together."""

    def __repr__(self) -> str:
        return f"InFlightState({self.state.name}, {self.delivery_count}, {self.member_id!r})"

    @property
    def is_terminal(self) -> bool:
        """Whether the record is never delivered again, unless the change being written is rolled back."""
        return self.state in TERMINAL_STATES

    @property
    def has_ongoing_state_transition(self) -> bool:
        """Whether a state change is being written."""
        return self._before is not None

    @property
    def is_acquirable(self) -> bool:
        """Whether a member may acquire the record now."""
        return self.state is RecordState.AVAILABLE and self._before is None

    def acquire(self, member_id: str) -> bool:
        """Acquire the record for the member, which counts as a delivery; return False if it is not acquirable."""
        if not self.is_acquirable:
            return False
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        return True

    def try_update_state(self, new_state: RecordState, limit: DeliveryLimit) -> bool:
        """Change the state and end the acquisition; return False if the transition is invalid.

        A record at its delivery limit becomes undeliverable instead of available.
        """
        if self._before is not None:
            return False
        if new_state is RecordState.AVAILABLE and self.delivery_count >= limit.max_deliveries:
            new_state = limit.undeliverable
        if not self.state.allows(new_state):
            return False
        self.state = new_state
        self.member_id = EMPTY_MEMBER_ID
        return True

    def start_state_transition(self, new_state: RecordState, limit: DeliveryLimit) -> bool:
        """Change the state as `try_update_state` does, pending `complete_state_transition`."""
        state, member_id = self.state, self.member_id
        if not self.try_update_state(new_state, limit):
            return False
        self._before = (state, member_id, limit.max_deliveries)
        return True

    def complete_state_transition(self, *, commit: bool) -> bool:
        """Keep the pending change, or roll it back; return whether any of the records is available now.

        A record archived meanwhile stays archived. A rollback does not return records to a member whose lock has
        timed out meanwhile; as in Kafka, those at their delivery limit are then archived without a dead letter.
        """
        is_available = False
        pending = [self]
        while pending:
            state = pending.pop()
            pending += state.parts_cut_off
            state.parts_cut_off = ()
            state.end_state_transition(commit=commit)
            is_available = is_available or state.state is RecordState.AVAILABLE
        return is_available

    def end_state_transition(self, *, commit: bool) -> None:
        """Keep or roll back the change of this state only, without the parts split off."""
        before = self._before
        self._before = None
        if commit or self._is_permanently_archived:
            self.end_lock()
            return
        assert before is not None
        state, member_id, max_delivery_count = before
        if self.lock is not None and self.lock.has_expired:
            is_last = self.delivery_count >= max_delivery_count
            self.state = RecordState.ARCHIVED if is_last else RecordState.AVAILABLE
            self.member_id = EMPTY_MEMBER_ID
            self.end_lock()
        else:
            self.state = state
            self.member_id = member_id

    def archive(self) -> None:
        """Archive the record permanently, even if a pending change is rolled back."""
        self._is_permanently_archived = True
        self.state = RecordState.ARCHIVED
        self.member_id = EMPTY_MEMBER_ID
        self.end_lock()

    def end_lock(self) -> None:
        """Cancel the lock, if there is one."""
        if self.lock is not None:
            self.lock.cancel()
            self.lock = None

    # -- parts of a batch -----------------------------------------------------------------------

    def cut_off(self, offset: int, locks: AcquisitionLocks) -> InFlightState:
        """Return a copy of the state for the records from the offset on; the lock is split there, too."""
        rest = InFlightState(self.state, self.delivery_count, self.member_id)
        if self.lock is not None:
            rest.lock = locks.cut_off(self.lock, offset)
        rest._is_permanently_archived = self._is_permanently_archived
        if self._before is not None:
            rest._before = self._before
            self.parts_cut_off = (*self.parts_cut_off, rest)
        return rest

    def can_take_over(self, following: InFlightState) -> bool:
        """Whether the following records have an equal state, and neither has a pending change."""
        if (
            self.state is not following.state
            or self.delivery_count != following.delivery_count
            or self.member_id != following.member_id
            or self._before is not None
            or following._before is not None
            or self._is_permanently_archived is not following._is_permanently_archived
        ):
            return False
        lock, other = self.lock, following.lock
        if lock is None or other is None:
            return lock is other
        return lock.can_take_over(other)

    def take_over(self, following: InFlightState) -> None:
        """Extend this state to the following records; requires `can_take_over`."""
        if self.lock is not None and following.lock is not None:
            self.lock.last_offset = following.lock.last_offset
            following.end_lock()

"""The time for which a member has acquired records; mirrors `AcquisitionLockTimerTask` and its handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_purgatory import TimerTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock, Timer


class AcquisitionLockTimerTask(TimerTask):
    """Ends the lock on the records from `first_offset` to `last_offset` after `delay_ms`."""

    __slots__ = ("_on_timeout", "first_offset", "has_expired", "last_offset", "member_id")

    def __init__(
        self,
        delay_ms: int,
        member_id: str,
        first_offset: int,
        last_offset: int,
        on_timeout: Callable[[AcquisitionLockTimerTask], object],
    ) -> None:
        super().__init__(delay_ms)
        self.member_id = member_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.has_expired = False
        """Whether it was over while the state of the records was being written."""
        self._on_timeout = on_timeout

    def run(self) -> None:
        """Release the records, or archive those that were delivered often enough."""
        self.has_expired = True
        self._on_timeout(self)

    def can_take_over(self, following: AcquisitionLockTimerTask) -> bool:
        """Whether the lock on the records behind these ends at the same time."""
        return self.expiration_ms == following.expiration_ms and not (self.has_expired or following.has_expired)


class AcquisitionLocks:
    """The locks of one share partition: tasks of a timer, which the broker's share partitions have together."""

    __slots__ = ("_clock", "_duration_ms", "_on_timeout", "_timer")

    def __init__(
        self,
        timer: Timer,
        clock: Clock,
        duration_ms: Callable[[], int],
        on_timeout: Callable[[AcquisitionLockTimerTask], object],
    ) -> None:
        """`duration_ms()` is for how long records are locked from now on; the group's configuration."""
        self._timer = timer
        self._clock = clock
        self._duration_ms = duration_ms
        self._on_timeout = on_timeout

    def lock(self, member_id: str, first_offset: int, last_offset: int) -> AcquisitionLockTimerTask:
        """Lock these records for the member, from now on and for as long as is configured."""
        return self._schedule(member_id, first_offset, last_offset, self._duration_ms())

    def renewed(self, lock: AcquisitionLockTimerTask) -> AcquisitionLockTimerTask:
        """Return a lock in the place of this one, which ends at the same time, after those that do so already."""
        if lock.has_expired:
            return lock
        lock.cancel()
        return self._until_end_of(lock, lock.first_offset)

    def cut_off(self, lock: AcquisitionLockTimerTask, offset: int) -> AcquisitionLockTimerTask:
        """Return a lock on the records from the offset on, which ends when this one does; this one ends there.

        One whose time is over stays that of all.
        """
        if lock.has_expired:
            return lock
        rest = self._until_end_of(lock, offset)
        lock.last_offset = offset - 1
        return rest

    def _until_end_of(self, lock: AcquisitionLockTimerTask, first_offset: int) -> AcquisitionLockTimerTask:
        # Not at once, even if it is due: whoever cuts a lock is not done with the records.
        delay_ms = max(lock.expiration_ms - self._clock.now_ms(), 1)
        return self._schedule(lock.member_id, first_offset, lock.last_offset, delay_ms)

    def _schedule(self, member_id: str, first_offset: int, last_offset: int, delay_ms: int) -> AcquisitionLockTimerTask:
        task = AcquisitionLockTimerTask(delay_ms, member_id, first_offset, last_offset, self._on_timeout)
        self._timer.add(task)
        return task

"""Locks on acquired records; mirrors `AcquisitionLockTimerTask` and its handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_purgatory import TimerTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock, Timer


class AcquisitionLockTimerTask(TimerTask):
    """Times out the lock on the records from `first_offset` to `last_offset` after `delay_ms`."""

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
        """Whether the lock has timed out."""
        self._on_timeout = on_timeout

    def run(self) -> None:
        """Report that the lock has timed out."""
        self.has_expired = True
        self._on_timeout(self)

    def can_take_over(self, following: AcquisitionLockTimerTask) -> bool:
        """Whether both locks expire at the same time, so that this one can cover the records of both."""
        return self.expiration_ms == following.expiration_ms and not (self.has_expired or following.has_expired)


class AcquisitionLocks:
    """Creates the locks of one share partition on a timer shared by all share partitions of the broker."""

    __slots__ = ("_clock", "_duration_ms", "_on_timeout", "_timer")

    def __init__(
        self,
        timer: Timer,
        clock: Clock,
        duration_ms: Callable[[], int],
        on_timeout: Callable[[AcquisitionLockTimerTask], object],
    ) -> None:
        """`duration_ms()` returns the group's configured duration of new locks."""
        self._timer = timer
        self._clock = clock
        self._duration_ms = duration_ms
        self._on_timeout = on_timeout

    def lock(self, member_id: str, first_offset: int, last_offset: int) -> AcquisitionLockTimerTask:
        """Start a lock of the member on these records."""
        return self._schedule(member_id, first_offset, last_offset, self._duration_ms())

    def renewed(self, lock: AcquisitionLockTimerTask) -> AcquisitionLockTimerTask:
        """Replace a lock by one that expires at the same time, but after all other locks of that time."""
        if lock.has_expired:
            return lock
        lock.cancel()
        return self._until_end_of(lock, lock.first_offset)

    def cut_off(self, lock: AcquisitionLockTimerTask, offset: int) -> AcquisitionLockTimerTask:
        """Return a lock with the same expiration on the records from the offset on, and remove them from this one.

        A lock that has timed out keeps all its records.
        """
        if lock.has_expired:
            return lock
        rest = self._until_end_of(lock, offset)
        lock.last_offset = offset - 1
        return rest

    def _until_end_of(self, lock: AcquisitionLockTimerTask, first_offset: int) -> AcquisitionLockTimerTask:
        # At least 1 ms, even if the lock is due, because the caller is still changing the records.
        delay_ms = max(lock.expiration_ms - self._clock.now_ms(), 1)
        return self._schedule(lock.member_id, first_offset, lock.last_offset, delay_ms)

    def _schedule(self, member_id: str, first_offset: int, last_offset: int, delay_ms: int) -> AcquisitionLockTimerTask:
        task = AcquisitionLockTimerTask(delay_ms, member_id, first_offset, last_offset, self._on_timeout)
        self._timer.add(task)
        return task

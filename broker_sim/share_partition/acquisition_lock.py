"""The time for which a member has acquired records; mirrors `AcquisitionLockTimerTask` and its handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purgatory import TimerTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from purgatory import Clock, Timer

__all__ = ["AcquisitionLockTimerTask", "AcquisitionLocks"]


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

    def lock_one_of(self, whole: AcquisitionLockTimerTask, offset: int) -> AcquisitionLockTimerTask:
        """Lock one record until the time at which the lock on its batch ends."""
        delay_ms = whole.expiration_ms - self._clock.now_ms()
        return self._schedule(whole.member_id, offset, offset, delay_ms)

    def _schedule(
        self, member_id: str, first_offset: int, last_offset: int, delay_ms: int
    ) -> AcquisitionLockTimerTask:
        task = AcquisitionLockTimerTask(
            delay_ms, member_id, first_offset, last_offset, self._on_timeout
        )
        self._timer.add(task)
        return task

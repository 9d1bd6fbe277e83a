"""Frozen values that a timer and a purgatory return: safe to keep and to share.

`PurgatoryStatistics` carries Kafka's gauges PurgatorySize and NumDelayedOperations; the list of
parked operations has no counterpart in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker_sim_purgatory.timer_task import TimerTask


class PlacedTask(NamedTuple):
    """A task and its place in the wheel: level from 1 (0: due, kept for the next round), bucket from 0."""

    task: TimerTask
    wheel_level: int
    wheel_bucket: int


class TimerStatistics(NamedTuple):
    """A timer's figures at one moment."""

    size: int
    """Tasks that wait in the wheel."""
    levels: int
    """Levels of the wheel that exist so far."""
    expired: int
    """Tasks that have expired since the start."""
    expired_per_second: float
    """Tasks that expired per second, over the last minute."""


class PurgatoryStatistics(NamedTuple):
    """A purgatory's figures at one moment."""

    name: str
    watched: int
    """Entries in all watch lists, completed ones not yet purged included (PurgatorySize)."""
    num_delayed: int
    """Operations that wait in the timer (NumDelayedOperations)."""
    watched_keys: int
    """Keys that have a watch list."""
    estimated_total_operations: int
    """Operations watched since the last purge, plus those that were delayed then."""
    purges: int
    """Sweeps of the watch lists so far."""
    purged: int
    """Entries removed by those sweeps."""
    total_watched: int
    """Operations that had to wait, since the start."""
    expired: int
    """Operations that have expired since the start, and other tasks of the timer that have run."""
    expired_per_second: float
    """Operations that expired per second, over the last minute (ExpiresPerSec)."""

    @property
    def completed(self) -> int:
        """Watched operations that ended before their deadline, completed or cancelled."""
        return self.total_watched - self.num_delayed - self.expired


class ParkedOperation(NamedTuple):
    """One operation that waits in a purgatory."""

    operation_id: int
    operation: str
    """Name of the operation's class."""
    keys: tuple[object, ...]
    """The keys under which the operation is watched, in no particular order."""
    delay_ms: int
    age_ms: int
    """Time since the operation was parked."""
    time_left_ms: int
    """Time until the operation expires; 0 when it is due and the timer has not reached it yet."""
    wheel_level: int
    """Level of the timing wheel, from 1."""
    wheel_bucket: int
    """Bucket of that level, from 0."""

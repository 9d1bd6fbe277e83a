"""Frozen snapshots of a timer's wheels and of a purgatory's watch lists.

Kafka has no counterpart; its purgatories show two gauges.
"""

from dataclasses import dataclass
from typing import Any

from broker_sim_purgatory._timer_task_list import NOT_ENQUEUED, TimerTaskList
from broker_sim_purgatory._timing_wheel import TimingWheel
from broker_sim_purgatory.delayed_operation import DelayedOperation
from broker_sim_purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from broker_sim_purgatory.snapshots import PurgatoryStatistics
from broker_sim_purgatory.system_timer import Timer
from broker_sim_purgatory.timer_task import TimerTask

__all__ = [
    "BucketSnapshot",
    "PurgatorySnapshot",
    "TaskSnapshot",
    "TimerSnapshot",
    "WatchListSnapshot",
    "WheelSnapshot",
    "inspect_purgatory",
    "inspect_timer",
]


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """A task that waits in a bucket."""

    name: str
    """Name of its class."""
    operation_id: int | None
    """The delayed operation's id, 0 if it has none yet; None for a plain task."""
    delay_ms: int
    expiration_ms: int


@dataclass(frozen=True, slots=True)
class BucketSnapshot:
    """A bucket of a wheel; a task added now with a deadline in [start_ms, end_ms) goes there.

    That is, unless a finer wheel covers the deadline.
    """

    index: int
    start_ms: int
    end_ms: int
    enqueued: bool
    """Whether the bucket is in the delay queue; an emptied bucket may still be."""
    tasks: tuple[TaskSnapshot, ...]


@dataclass(frozen=True, slots=True)
class WheelSnapshot:
    """One level of the wheel."""

    level: int
    tick_ms: int
    current_time_ms: int
    """The wheel's time in ms: that of the last expired bucket, rounded down to the tick."""
    end_ms: int
    """The first deadline beyond this level's reach."""
    buckets: tuple[BucketSnapshot, ...]

    @property
    def size(self) -> int:
        """Tasks that wait in this level."""
        return sum(len(bucket.tasks) for bucket in self.buckets)

    @property
    def current_index(self) -> int:
        """The bucket in which `current_time_ms` lies."""
        return self.current_time_ms // self.tick_ms % len(self.buckets)


@dataclass(frozen=True, slots=True)
class TimerSnapshot:
    """A timer whose wheels were all read at one moment."""

    now_ms: int
    wheels: tuple[WheelSnapshot, ...]
    """The finest first."""

    @property
    def size(self) -> int:
        """Tasks that wait."""
        return sum(wheel.size for wheel in self.wheels)


@dataclass(frozen=True, slots=True)
class WatchListSnapshot:
    """The operations that are watched under one key."""

    key: object
    waiting: int
    completed: int
    """Completed operations not yet purged."""


@dataclass(frozen=True, slots=True)
class PurgatorySnapshot:
    """A purgatory; the timer was read a little later than the watch lists."""

    name: str
    statistics: PurgatoryStatistics
    timer: TimerSnapshot
    watch_lists: tuple[WatchListSnapshot, ...]
    """The longest first."""


def inspect_timer(timer: Timer) -> TimerSnapshot:
    """Return where every task of `timer` waits. O(n), under the timer's lock. Any thread."""
    wheels = timer.read_wheels(lambda levels: tuple(_inspect_wheel(level) for level in levels))
    return TimerSnapshot(timer.clock.now_ms(), wheels)


def inspect_purgatory(purgatory: DelayedOperationPurgatory[Any]) -> PurgatorySnapshot:
    """Return the operations of `purgatory`, by deadline and by key. O(n). Any thread."""
    watch_lists = [
        _inspect_watch_list(key, operations, forgotten) for key, operations, forgotten in purgatory.watched_by_key()
    ]
    watch_lists.sort(key=lambda each: (-each.waiting, -each.completed, str(each.key)))
    return PurgatorySnapshot(purgatory.name, purgatory.statistics(), inspect_timer(purgatory.timer), tuple(watch_lists))


def _inspect_watch_list(key: object, operations: tuple[DelayedOperation, ...], forgotten: int) -> WatchListSnapshot:
    completed = sum(operation.completed for operation in operations)
    return WatchListSnapshot(key, len(operations) - completed, completed + forgotten)


def _inspect_wheel(wheel: TimingWheel) -> WheelSnapshot:
    return WheelSnapshot(
        wheel.level,
        wheel.tick_ms,
        wheel.current_time_ms,
        wheel.end_ms,
        tuple(_inspect_bucket(wheel, bucket) for bucket in wheel.buckets()),
    )


def _inspect_bucket(wheel: TimingWheel, bucket: TimerTaskList) -> BucketSnapshot:
    turns = wheel.current_time_ms // wheel.tick_ms
    start_ms = (turns + (bucket.index - turns) % wheel.wheel_size) * wheel.tick_ms
    return BucketSnapshot(
        bucket.index,
        start_ms,
        start_ms + wheel.tick_ms,
        bucket.expiration_ms != NOT_ENQUEUED,
        tuple(_inspect_task(task) for task in bucket),
    )


def _inspect_task(task: TimerTask) -> TaskSnapshot:
    operation_id = task.operation_id if isinstance(task, DelayedOperation) else None
    return TaskSnapshot(type(task).__name__, operation_id, task.delay_ms, task.expiration_ms)

"""A hierarchical timing wheel: O(1) to add and to cancel, whatever the number of tasks.

Mirrors org.apache.kafka.server.util.timer.TimingWheel. Deliberate differences: `add` climbs the
levels in a loop instead of a call per level; the timer's one lock covers adding and advancing.

A wheel is a ring of buckets. Level 1 has buckets of `tick_ms`; a task that is due beyond its
reach goes to the overflow wheel, whose tick is the whole turn of the wheel below, and so on.
With a tick of 1 ms and 20 buckets:

    level       tick      reach    a task due at 30 s, added at 0, waits in
    1           1 ms      20 ms
    2          20 ms     400 ms
    3         400 ms        8 s    and then here: bucket 15, due at 30 s, when it runs
    4            8 s      160 s    bucket 3, due at 24 s

A bucket covers [start, start + tick) and expires at its start. The tasks of an expired bucket
are added again: those with a tick or more of level 1 left sink to a finer level, the others run.
So a task moves at most once per level, and one that is cancelled early, as nearly all are, moves
not at all. A bucket of a coarse level whose range the finer levels cover receives no tasks.

The clock of a wheel moves only when a bucket expires, never tick by tick, and the levels move
together: level k stands at the current time rounded down to its tick.
"""

from typing import Final

from broker_sim_purgatory._delay_queue import DelayQueue
from broker_sim_purgatory._timer_task_entry import TaskOwner, TimerTaskEntry
from broker_sim_purgatory._timer_task_list import TimerTaskList

DUE: Final = 0
"""The task is due or cancelled and was not added: the caller handles it."""
WAITS: Final = 1
"""The task waits in the wheel."""
WAITS_FIRST: Final = 2
"""The task waits in the wheel, and its bucket is now the first to expire."""


class TimingWheel:
    """One level of the wheel, and through `overflow_wheel` all levels above it.

    `start_ms` is rounded down to the tick. Thread rule: the caller holds `owner.lock`.
    """

    __slots__ = (
        "_owner",
        "_queue",
        "current_time_ms",
        "end_ms",
        "interval_ms",
        "level",
        "overflow_wheel",
        "slots",
        "tick_ms",
        "wheel_size",
    )

    def __init__(
        self, tick_ms: int, wheel_size: int, start_ms: int, owner: TaskOwner, queue: DelayQueue, level: int = 1
    ) -> None:
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self.level = level
        self.interval_ms = tick_ms * wheel_size
        self.current_time_ms = start_ms - start_ms % tick_ms
        # Most timers of a broker have few tasks or none, so a bucket is made for its first task.
        self.slots: list[TimerTaskList | None] = [None] * wheel_size
        self.overflow_wheel: TimingWheel | None = None
        self.end_ms = self.current_time_ms + self.interval_ms
        self._owner = owner
        self._queue = queue

    def add(self, entry: TimerTaskEntry) -> int:
        """Put `entry` into the bucket of its `expiration_ms`; return WAITS or WAITS_FIRST.

        DUE if it was cancelled or is due within the current tick.
        """
        expiration_ms = entry.expiration_ms
        if entry.cancelled or expiration_ms < self.current_time_ms + self.tick_ms:
            return DUE
        wheel = self
        while expiration_ms >= wheel.end_ms:
            wheel = wheel.overflow_wheel or wheel._add_overflow_wheel()
        tick_ms = wheel.tick_ms
        virtual_id = expiration_ms // tick_ms
        index = virtual_id % wheel.wheel_size
        bucket = wheel.slots[index] or wheel.bucket(index)
        bucket.add(entry)
        # Within one turn of the wheel the expiration stays the same, so the bucket is enqueued
        # once per turn however many tasks it gets.
        start_ms = virtual_id * tick_ms
        if bucket.expiration_ms != start_ms:
            bucket.expiration_ms = start_ms
            if self._queue.offer(bucket):
                return WAITS_FIRST
        return WAITS

    def advance_clock(self, time_ms: int) -> None:
        """Move the clock of every level to `time_ms`, rounded down to the level's tick."""
        wheel: TimingWheel | None = self
        while wheel is not None and time_ms >= wheel.current_time_ms + wheel.tick_ms:
            wheel.current_time_ms = time_ms - time_ms % wheel.tick_ms
            wheel.end_ms = wheel.current_time_ms + wheel.interval_ms
            wheel = wheel.overflow_wheel

    def levels(self) -> "list[TimingWheel]":
        """Return this wheel and the overflow wheels that exist above it."""
        levels: list[TimingWheel] = []
        wheel: TimingWheel | None = self
        while wheel is not None:
            levels.append(wheel)
            wheel = wheel.overflow_wheel
        return levels

    def bucket(self, index: int) -> TimerTaskList:
        """Return the bucket with that index."""
        bucket = self.slots[index]
        if bucket is None:
            bucket = self.slots[index] = TimerTaskList(self._owner, self.level, index)
        return bucket

    def buckets(self) -> list[TimerTaskList]:
        """Return all buckets, in the order of their index."""
        return [self.bucket(index) for index in range(self.wheel_size)]

    def used_buckets(self) -> list[TimerTaskList]:
        """Return the buckets that have or had tasks, in the order of their index."""
        return [bucket for bucket in self.slots if bucket is not None]

    def _add_overflow_wheel(self) -> "TimingWheel":
        self.overflow_wheel = TimingWheel(
            self.interval_ms, self.wheel_size, self.current_time_ms, self._owner, self._queue, self.level + 1
        )
        return self.overflow_wheel

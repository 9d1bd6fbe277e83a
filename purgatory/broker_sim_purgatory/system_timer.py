"""A timer: tasks in a timing wheel, expired ones handed to an executor.

Mirrors org.apache.kafka.server.util.timer.Timer and SystemTimer. Deliberate differences: the
time comes from the injected Clock (Kafka's `add` reads the system clock itself); expired tasks
are handed over after the lock is released, so an executor may run them on the spot; the timer says when its next
bucket is due, so that a simulator can step there.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final, TypeVar

from broker_sim_purgatory._delay_queue import DelayQueue
from broker_sim_purgatory._expired_operation_reaper import ExpiredOperationReaper, Reaper
from broker_sim_purgatory._rate_window import RateWindow
from broker_sim_purgatory._timer_task_entry import TaskOwner
from broker_sim_purgatory._timer_task_list import NOT_ENQUEUED, TimerTaskList
from broker_sim_purgatory._timing_wheel import DUE, WAITS_FIRST, TimingWheel
from broker_sim_purgatory.clock import Clock, SystemClock, VirtualClock
from broker_sim_purgatory.executor import Executor, SingleThreadExecutor
from broker_sim_purgatory.native import mypyc_attr
from broker_sim_purgatory.snapshots import PlacedTask, TimerStatistics
from broker_sim_purgatory.timer_task import TimerTask

_ReadT = TypeVar("_ReadT")

NO_LIMIT: Final = 1 << 60
"""The limit in place of None: more tasks than a timer can hold."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Timer:
    """The interface that a purgatory uses; SystemTimer implements it.

    `owner` has the lock of the timer, which is its purgatory's lock too.
    """

    __slots__ = ("clock", "owner")

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.owner = TaskOwner()

    @abstractmethod
    def add(self, task: TimerTask) -> None:
        """Run `task` when its delay is over."""
        raise NotImplementedError

    def call_later(self, delay_ms: int, callback: Callable[..., object], *args: Any) -> TimerTask:
        """Call `callback(*args)` once when `delay_ms` have passed; return the task, which can be cancelled."""
        call = _Call(delay_ms, callback, args)
        self.add(call)
        return call

    def call_every(self, period_ms: int, callback: Callable[..., object], *args: Any) -> TimerTask:
        """Call `callback(*args)` every `period_ms`; cancel the returned task to end the series.

        The calls keep to multiples of the period from now: a late call does not shift the later ones, and of
        several overdue calls only one is made. An exception does not end the series. ValueError for a period
        below 1 ms.
        """
        call = _PeriodicCall(self, period_ms, callback, args)
        self.add(call)
        return call

    def postpone(
        self,
        task: TimerTask,  # noqa: ARG002 - used by timers that can postpone
        delay_ms: int | None = None,  # noqa: ARG002
    ) -> bool:
        """Restart the delay of a waiting task; return whether it waits on.

        `delay_ms` replaces its delay. A timer that returns False cannot do it: cancel the task and add another.
        """
        return False

    @abstractmethod
    def locked_add(self, task: TimerTask, expiration_ms: int) -> int:
        """Do the part of `add` for which the caller holds `owner.lock`.

        Returns DUE, WAITS or WAITS_FIRST. When the lock is free again, the caller calls `hand_over`
        if it is DUE, `first_changed` if it is WAITS_FIRST.
        """
        raise NotImplementedError

    @abstractmethod
    def first_changed(self) -> None:
        """Note that another bucket than before is the first to expire. The lock is free."""
        raise NotImplementedError

    @abstractmethod
    def hand_over(self, task: TimerTask) -> None:
        """Run `task` at once. The lock is free."""
        raise NotImplementedError

    @abstractmethod
    def advance_clock(self, timeout_ms: int) -> bool:
        """Wait at most `timeout_ms` for tasks that are due and hand them over."""
        raise NotImplementedError

    @abstractmethod
    def next_expiration_ms(self) -> int | None:
        """Return the time of the next `advance_clock` in ms, None if nothing waits."""
        raise NotImplementedError

    @abstractmethod
    def size(self) -> int:
        """Return how many tasks wait."""
        raise NotImplementedError

    @abstractmethod
    def placements(self) -> list[PlacedTask]:
        """Return every waiting task and its place in the wheel."""
        raise NotImplementedError

    @abstractmethod
    def statistics(self) -> TimerStatistics:
        """Return the timer's figures at this moment."""
        raise NotImplementedError

    @abstractmethod
    def locked_placements(self) -> list[PlacedTask]:
        """Return the same as `placements`; the caller holds `owner.lock`."""
        raise NotImplementedError

    @abstractmethod
    def locked_statistics(self) -> TimerStatistics:
        """Return the same as `statistics`; the caller holds `owner.lock`."""
        raise NotImplementedError

    @abstractmethod
    def read_wheels(self, read: Callable[[list[TimingWheel]], _ReadT]) -> _ReadT:
        """Return the result of `read(wheels)`; the wheels do not change during the call."""
        raise NotImplementedError

    @abstractmethod
    def start_reaper(self, name: str, work: Callable[[int], object], purge: Callable[[], object]) -> Reaper:
        """Arrange for `work(timeout_ms)`, which advances this timer and purges, to be called when it is due.

        `purge()` only purges, for a timer that does the two in different places.
        """
        raise NotImplementedError

    @abstractmethod
    def shutdown(self) -> None:
        """Stop for good."""
        raise NotImplementedError


class _Call(TimerTask):
    """A call of a function when the delay is over."""

    __slots__ = ("_args", "_callback")

    def __init__(self, delay_ms: int, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        super().__init__(delay_ms)
        self._callback = callback
        self._args = args

    def run(self) -> None:
        """Call the function."""
        self._callback(*self._args)


class _PeriodicCall(_Call):
    """Calls of a function, one per period; the next one is in the timer before this one is made."""

    __slots__ = ("_timer",)

    def __init__(self, timer: Timer, period_ms: int, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        super().__init__(period_ms, callback, args)
        if period_ms < 1:
            raise ValueError(f"a period is at least 1 ms, not {period_ms}")
        self._timer = timer

    def run(self) -> None:
        """Schedule the next call at the next multiple of the period, then make this one."""
        timer = self._timer
        overdue_ms = timer.clock.now_ms() - self.expiration_ms
        expiration_ms = self.expiration_ms + (max(overdue_ms, 0) // self.delay_ms + 1) * self.delay_ms
        with timer.owner.lock:
            # Cancelled after it was handed over, or dropped by a shutdown.
            if self.cancelled or timer.owner.closed:
                return
            placed = timer.locked_add(self, expiration_ms)
        if placed == WAITS_FIRST:
            timer.first_changed()
        elif placed == DUE:
            timer.hand_over(self)
        super().run()


@mypyc_attr(allow_interpreted_subclasses=True)
class SystemTimer(Timer):
    """The hierarchical timing wheel as a thread-safe timer.

    Defaults: `clock` a SystemClock, `executor` one daemon thread (`executor-<name>`), 20 buckets of 1 ms.
    `advance_clock` has to be called in a loop, by a purgatory's reaper, an event loop or a simulator. One call hands
    over at most `max_per_round` tasks (default: no limit); the next call hands over the other due tasks without
    waiting.

    With the 1 ms tick a task never runs before its delay has truly passed; a coarser tick runs
    it at the start of the tick in which it is due, as Kafka's does. Any thread may call anything.
    """

    # One lock covers wheel, buckets, links and delay queue; the whole lock story stands in
    # delayed_operation_purgatory.py. Expired tasks are handed over after it has been released, so
    # an executor that runs them on the spot may add, cancel and complete.

    __slots__ = ("_executor", "_lock", "_max_per_round", "_overdue", "_own_executor", "_queue", "_rate",
                 "_wheel", "name")  # fmt: skip

    def __init__(
        self,
        name: str,
        clock: Clock | None = None,
        executor: Executor | None = None,
        tick_ms: int = 1,
        wheel_size: int = 20,
        *,
        max_per_round: int | None = None,
    ) -> None:
        if max_per_round is not None and max_per_round < 1:
            raise ValueError(f"max_per_round is {max_per_round}: a round needs room for at least 1 task")
        if tick_ms < 1 or wheel_size < 2:
            raise ValueError(f"a wheel needs tick_ms >= 1 and wheel_size >= 2, not {tick_ms} and {wheel_size}")
        self.name = name
        super().__init__(clock if clock is not None else SystemClock())
        self._own_executor = SingleThreadExecutor(name) if executor is None else None
        self._executor = executor if executor is not None else self._own_executor
        self._lock = self.owner.lock
        self._queue = DelayQueue(self.clock, self._lock)
        now_ms = self.clock.now_ms()
        self._wheel = TimingWheel(tick_ms, wheel_size, now_ms, self.owner, self._queue)
        self._rate = RateWindow(now_ms)
        self._max_per_round = NO_LIMIT if max_per_round is None else max_per_round
        self._overdue = TimerTaskList(self.owner, level=0)
        """Due tasks beyond `max_per_round` in the last round."""

    def add(self, task: TimerTask) -> None:
        """Run `task` on the executor once its `delay_ms` have passed from now.

        A task without a delay goes to the executor at once. A task that already waits is moved to its new deadline.
        RuntimeError after `shutdown`.
        """
        owner = self.owner
        if task.owner is not owner and task.owner is not None:
            owner.adopt(task)
        expiration_ms = self.clock.deadline_ms(task.delay_ms)
        lock = self._lock
        lock.acquire()
        try:
            placed = self.locked_add(task, expiration_ms)
        finally:
            lock.release()
        if placed == WAITS_FIRST:
            self.first_changed()
        elif placed == DUE:
            self.hand_over(task)

    def postpone(self, task: TimerTask, delay_ms: int | None = None) -> bool:
        """Restart the delay of a waiting task; return whether it waits on.

        `delay_ms` replaces its delay. False, without effect, for a task that was handed over, cancelled or never
        added. A task that is due within the current tick is handed over now; that returns False too.
        A task that is now due later stays in its bucket; when the bucket expires, the task moves to its new one.
        """
        if delay_ms is None:
            delay_ms = task.delay_ms
        expiration_ms = self.clock.deadline_ms(delay_ms)
        lock = self._lock
        lock.acquire()
        try:
            if task.owner is not self.owner or task.next is None:
                return False
            task.delay_ms = delay_ms
            if expiration_ms >= task.expiration_ms:
                task.expiration_ms = expiration_ms
                return True
            placed = self.locked_add(task, expiration_ms)
        finally:
            lock.release()
        if placed == WAITS_FIRST:
            self.first_changed()
        elif placed == DUE:
            self.hand_over(task)
        return placed != DUE

    def locked_add(self, task: TimerTask, expiration_ms: int) -> int:
        """Put `task` into the wheel; see Timer.locked_add. RuntimeError after `shutdown`."""
        if self.owner.closed:
            raise RuntimeError(f"timer {self.name} is shut down: nothing can be added any more")
        task.expiration_ms = expiration_ms
        task.cancelled = False
        placed = self._wheel.add(task)
        if placed == DUE:
            task.remove()
            self._rate.mark(self.clock.now_ms(), 1)
        return placed

    def first_changed(self) -> None:
        """Do nothing: a thread that waits in `advance_clock` has been woken up."""

    def hand_over(self, task: TimerTask) -> None:
        """Give `task` to the executor."""
        self._hand_over([task])

    def advance_clock(self, timeout_ms: int) -> bool:
        """Hand every task that is due to the executor; if none is, wait at most `timeout_ms`.

        True if a bucket expired, even one whose tasks only moved to a finer level or were all
        cancelled. If the executor refuses or fails tasks, the others are handed over all the
        same and then an ExceptionGroup is raised.
        """
        with self._lock:
            expired = self._take_overdue()
            if not expired:
                bucket = self._queue.poll(timeout_ms)
                if bucket is None:
                    return False
                expired = self._drain(bucket)
            if expired:
                self._rate.mark(self.clock.now_ms(), len(expired))
        if expired:
            self._expire(expired)
        return True

    def next_expiration_ms(self) -> int | None:
        """Return when the first bucket that holds tasks is due, by `clock.now_ms()`; None if no task waits.

        No task is due earlier. If the clock is moved there, `advance_clock(0)` makes progress: tasks run or sink to a
        finer level.
        """
        with self._lock:
            if not self._overdue.is_empty():
                return self._wheel.current_time_ms
            return self._queue.next_expiration_ms()

    def size(self) -> int:
        """Return the number of tasks in the wheel, without cancelled ones."""
        return self.owner.count

    def placements(self) -> list[PlacedTask]:
        """Return every waiting task with its level and bucket, finest level first. O(n).

        Level 0 has the due tasks beyond `max_per_round` in the last round.
        """
        with self._lock:
            return self.locked_placements()

    def statistics(self) -> TimerStatistics:
        """Return the timer's figures at this moment."""
        with self._lock:
            return self.locked_statistics()

    def locked_placements(self) -> list[PlacedTask]:
        """Return the same as `placements`; the caller holds `owner.lock`."""
        return [
            PlacedTask(task, bucket.level, bucket.index)
            for bucket in (self._overdue, *self._buckets())
            for task in bucket
        ]

    def locked_statistics(self) -> TimerStatistics:
        """Return the same as `statistics`; the caller holds `owner.lock`."""
        return TimerStatistics(
            size=self.owner.count,
            levels=len(self._wheel.levels()),
            expired=self._rate.total,
            expired_per_second=self._rate.per_second(self.clock.now_ms()),
        )

    def read_wheels(self, read: Callable[[list[TimingWheel]], _ReadT]) -> _ReadT:
        """Return `read(wheels)`, called with the finest wheel first, under the timer's lock: be quick."""
        with self._lock:
            return read(self._wheel.levels())

    def start_reaper(self, name: str, work: Callable[[int], object], purge: Callable[[], object]) -> Reaper:
        """Start a thread `name` that calls `work(200)`, which advances this timer, in a loop.

        ValueError with a VirtualClock: its time does not pass by waiting, so that would spin.
        """
        del purge
        if isinstance(self.clock, VirtualClock):
            raise ValueError(  # noqa: TRY004 - it is the value of another argument that is wrong
                f"timer {self.name}: a VirtualClock needs reaper_enabled=False, or a VirtualTimer"
            )
        reaper = ExpiredOperationReaper(name, work, self.wakeup)
        reaper.start()
        return reaper

    def wakeup(self) -> None:
        """Make `advance_clock` return at once if a thread waits in it, else the next one."""
        with self._lock:
            self._queue.wakeup()

    def shutdown(self) -> None:
        """Drop waiting tasks, refuse new ones, and end the default executor's thread.

        Tasks that were handed over still run; waits at most 5 s for them. Idempotent.
        """
        with self._lock:
            self.owner.closed = True
            dropped = [bucket.flush() for bucket in self._buckets() if bucket.expiration_ms != NOT_ENQUEUED]
            dropped.append(self._overdue.flush())
            self._queue.clear()
            self._queue.wakeup()
        del dropped  # without the lock: freeing a task may run the user's code
        if self._own_executor is not None:
            self._own_executor.shutdown()

    def _buckets(self) -> list[TimerTaskList]:
        return [bucket for wheel in self._wheel.levels() for bucket in wheel.used_buckets()]

    def _take_overdue(self) -> list[TimerTask]:
        """Return the overdue tasks of the last round, at most `max_per_round`."""
        expired: list[TimerTask] = []
        while not (expired or self._overdue.is_empty()):
            # A task that was postponed meanwhile goes back into the wheel.
            expired = [task for task in self._overdue.take(self._max_per_round) if self._wheel.add(task) == DUE]
        return expired

    def _drain(self, first: TimerTaskList) -> list[TimerTask]:
        """Take up to `max_per_round` due tasks out of the wheel; tasks that are not due yet sink a level."""
        wheel = self._wheel
        expired: list[TimerTask] = []
        bucket: TimerTaskList | None = first
        while bucket is not None:
            wheel.advance_clock(bucket.expiration_ms)
            expired.extend(task for task in bucket.flush() if wheel.add(task) == DUE)
            bucket = self._queue.poll_expired() if len(expired) < self._max_per_round else None
        for task in expired[self._max_per_round :]:
            self._overdue.add(task)
        del expired[self._max_per_round :]
        return expired

    def _expire(self, tasks: list[TimerTask]) -> None:
        """Hand over the tasks that are due; the lock is free."""
        self._hand_over(tasks)

    def _hand_over(self, tasks: list[TimerTask]) -> None:
        executor = self._executor
        assert executor is not None
        failures: list[Exception] = []
        for task in tasks:
            try:
                executor.submit(task.run)
            except Exception as failure:  # noqa: BLE001 - one bad task must not lose the others
                failures.append(failure)
        if failures:
            raise ExceptionGroup(f"timer {self.name}: expired tasks failed", failures)

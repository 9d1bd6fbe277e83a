"""A timer that an asyncio event loop drives itself.

Kafka has no counterpart. The wheel knows when its next bucket is due, so one `call_later` of the loop at a time
serves any number of tasks, and no thread has to wait for the interpreter before a task can expire. Purging, which is
not urgent, may have a thread.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any

from broker_sim_purgatory._expired_operation_reaper import WORK_TIMEOUT_MS, ExpiredOperationReaper, Reaper
from broker_sim_purgatory.clock import Clock
from broker_sim_purgatory.system_timer import SystemTimer
from broker_sim_purgatory.timer_task import TimerTask

Run = Callable[[Callable[[], object]], object]

_PURGE_DELAY_S = WORK_TIMEOUT_MS / 1_000


def call_on_loop(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: Any) -> None:
    """Call `callback` at once if this thread runs `loop`, else soon on the thread that does."""
    if asyncio._get_running_loop() is loop:  # noqa: SLF001 - documented for authors of event loops
        callback(*args)
    else:
        loop.call_soon_threadsafe(callback, *args)


class LoopTimer(SystemTimer):
    """A SystemTimer whose tasks run as callbacks of `loop` (default: the running loop).

    Any thread may add and cancel; the loop's own thread is fastest. An exception of a task goes to the loop's
    exception handler. The clock is `loop.clock` if the loop has one (a loop in virtual time does), else a
    SystemClock. Adding to the timer of a closed loop raises RuntimeError.

    A purgatory's round, which expires and purges, runs when a task is due, and within 200 ms of a purge
    becoming due, as often as Kafka's reaper would.
    `max_per_round` is the number of expired tasks after which the loop gets to its other callbacks.
    `run(callback)` calls each round and each task, now, later or never (default: at once). A process that can be
    paused keeps the round until it continues; nothing leaves the wheel meanwhile, and the kept round then expires
    all tasks that are due, in order of time.
    With `purge_thread` purging runs on a thread, as in Kafka, beside the loop; `run` then calls the callback that
    wakes that thread, the first time starts it. Expiry stays with the loop.
    Tasks run in `context` (default: the context of the caller that made the loop wake up for them).
    """

    # Only the loop's thread touches the handles and their state.
    __slots__ = ("_context", "_due_ms", "_handle", "_loop", "_purge_handle", "_purge_thread",
                 "_purger", "_round_is_asked", "_run", "_stopped", "_work")  # fmt: skip

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Clock | None = None,
        tick_ms: int = 1,
        wheel_size: int = 20,
        *,
        max_per_round: int | None = None,
        run: Run | None = None,
        purge_thread: bool = False,
        context: Context | None = None,
    ) -> None:
        self._context = context
        self._purge_thread = purge_thread
        self._purger: _PurgeThread | None = None
        self._loop = asyncio.get_running_loop() if loop is None else loop
        self._run: Run = _call if run is None else run
        if clock is None:
            clock = getattr(self._loop, "clock", None)
        executor = _LoopExecutor(self._loop, self._run, context)
        super().__init__(name, clock, executor, tick_ms, wheel_size, max_per_round=max_per_round)
        self.owner.on_purge_due = self._ask_for_purge
        self._work: Callable[[int], object] = self.advance_clock
        self._handle: asyncio.TimerHandle | None = None
        self._purge_handle: asyncio.TimerHandle | None = None
        self._due_ms = 0
        self._round_is_asked = False
        self._stopped = False

    def first_changed(self) -> None:
        """Make the loop wake up for the bucket that is now the first to expire."""
        call_on_loop(self._loop, self._schedule)

    def start_reaper(self, name: str, work: Callable[[int], object], purge: Callable[[], object]) -> Reaper:
        """Make the loop call `work(0)` when a task or a purge is due.

        With `purge_thread` the loop only expires, and a thread `name` calls `purge()`.
        """
        if self._purge_thread:
            self._purger = _PurgeThread(name, purge)
        else:
            self._work = work
        return _LoopReaper(self, self._purger)

    def stop(self) -> None:
        """Stop waking the loop; waiting tasks stay, to be advanced by hand. Idempotent."""
        self._stopped = True
        if not self._loop.is_closed():
            call_on_loop(self._loop, self._unschedule)

    def shutdown(self) -> None:
        """Drop waiting tasks, refuse new ones, and stop waking the loop. Idempotent."""
        super().shutdown()
        self.stop()

    def _expire(self, tasks: list[TimerTask]) -> None:
        # At once and not by the executor, so that a purgatory's round purges what these tasks complete.
        for task in tasks:
            try:
                self._run(task.run)
            except Exception as failure:  # noqa: BLE001 - one bad task must not lose the others
                message = f"timer {self.name}: an expired task failed"
                self._loop.call_exception_handler({"message": message, "exception": failure})

    def _schedule(self) -> None:
        """Make the loop wake up for the first bucket, unless it wakes up earlier anyway."""
        due_ms = self.next_expiration_ms()
        if self._stopped or self._round_is_asked or due_ms is None:
            return
        if self._handle is not None:
            if self._due_ms <= due_ms:
                return
            self._handle.cancel()
        self._due_ms = due_ms
        delay_s = max(self.clock.seconds_until(due_ms), 0)
        self._handle = self._loop.call_later(delay_s, self._wake, context=self._context)

    def _unschedule(self) -> None:
        for handle in (self._handle, self._purge_handle):
            if handle is not None:
                handle.cancel()
        self._handle = self._purge_handle = None

    def _wake(self) -> None:
        self._handle = None
        self._ask_for_round()

    def _ask_for_purge(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing is left to do
            call_on_loop(self._loop, self._schedule_purge)

    def _schedule_purge(self) -> None:
        a_round_purges = self._round_is_asked and self._purger is None
        if not (self._stopped or a_round_purges) and self._purge_handle is None:
            self._purge_handle = self._loop.call_later(_PURGE_DELAY_S, self._wake_for_purge, context=self._context)

    def _wake_for_purge(self) -> None:
        self._purge_handle = None
        if self._purger is None:
            self._ask_for_round()
        else:
            self._run(self._purger.ask)

    def _ask_for_round(self) -> None:
        """Make `run` call one round; until that has run, the loop need not wake up again."""
        if not (self._stopped or self._round_is_asked):
            self._round_is_asked = True
            self._run(self._round)

    def _round(self) -> None:
        self._round_is_asked = False
        if self._stopped:
            return
        try:
            self._work(0)
        finally:
            self._schedule()


class _LoopExecutor:
    """Runs a task without a delay in the next turn of the loop, never inside the call that adds it."""

    __slots__ = ("_context", "_loop", "_run")

    def __init__(self, loop: asyncio.AbstractEventLoop, run: Run, context: Context | None) -> None:
        self._context = context
        self._loop = loop
        self._run = run

    def submit(self, fn: Callable[[], object], /) -> None:
        """Run `fn` in the next turn of the loop."""
        call_on_loop(self._loop, self._call_soon, fn)

    def _call_soon(self, fn: Callable[[], object]) -> None:
        self._loop.call_soon(self._run, fn, context=self._context)


class _LoopReaper:
    """The reaper of a LoopTimer: ends its calls on the loop, and its purge thread if it has one."""

    __slots__ = ("_purger", "_timer")

    def __init__(self, timer: LoopTimer, purger: "_PurgeThread | None") -> None:
        self._timer = timer
        self._purger = purger

    def shutdown(self) -> None:
        """Expire and purge nothing from now on. Idempotent."""
        self._timer.stop()
        if self._purger is not None:
            self._purger.shutdown()


class _PurgeThread:
    """Purges on a thread of its own after each `ask`; the first one starts it, because most timers never need it."""

    __slots__ = ("_asked", "_is_shut_down", "_lock", "_name", "_purge", "_reaper")

    def __init__(self, name: str, purge: Callable[[], object]) -> None:
        self._name = name
        self._purge = purge
        self._asked = threading.Event()
        self._reaper: ExpiredOperationReaper | None = None
        self._is_shut_down = False
        self._lock = threading.Lock()

    def ask(self) -> None:
        """Make the thread purge soon."""
        self._asked.set()
        with self._lock:
            if self._reaper is None and not self._is_shut_down:
                self._reaper = ExpiredOperationReaper(self._name, self._purge_when_asked, self._asked.set)
                self._reaper.start()

    def shutdown(self) -> None:
        """End the thread; returns when it has ended. Idempotent."""
        with self._lock:
            self._is_shut_down = True
        if self._reaper is not None:
            self._reaper.shutdown()

    def _purge_when_asked(self, timeout_ms: int) -> None:
        del timeout_ms  # it need not look for expired buckets
        self._asked.wait()
        self._asked.clear()
        self._purge()


def _call(task: Callable[[], object]) -> None:
    task()

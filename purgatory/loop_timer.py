"""A timer that an asyncio event loop drives itself, without a thread.

Kafka has no counterpart. The wheel knows when it next has something to do, so one `call_later`
of the loop at a time is enough for any number of tasks.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from purgatory.clock import Clock
from purgatory.expired_operation_reaper import Reaper
from purgatory.system_timer import SystemTimer
from purgatory.timer_task import TimerTask
from purgatory.virtual_loop import VirtualLoop

ADDS_PER_ROUND = 1_000
"""Tasks added since the last round that make for another one.

A purgatory purges in its rounds; without this, operations that all complete before their time
would never let it have one.
"""


def call_on_loop(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: Any
) -> None:
    """Call `callback` at once if this thread runs `loop`, else soon on the thread that does."""
    if asyncio._get_running_loop() is loop:  # noqa: SLF001  public, for whoever knows loops
        callback(*args)
    else:
        loop.call_soon_threadsafe(callback, *args)


class LoopTimer(SystemTimer):
    """A SystemTimer whose tasks run as callbacks of `loop`, the running one unless given.

    Any thread may add and cancel; the loop's own does it fastest. What a task raises goes to the
    loop's exception handler. On a VirtualLoop the clock is the loop's, else a SystemClock.
    Adding to the timer of a closed loop raises RuntimeError.
    """

    # Only the loop's thread touches the handle. The count of adds is a hint and needs no lock.
    __slots__ = ("_adds_before_round", "_due_ms", "_handle", "_loop", "_run", "_stopped", "_work")

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Clock | None = None,
        tick_ms: int = 1,
        wheel_size: int = 20,
        run: Callable[[Callable[[], object]], object] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop() if loop is None else loop
        self._run = run
        if clock is None and isinstance(self._loop, VirtualLoop):
            clock = self._loop.clock
        super().__init__(name, clock, _LoopExecutor(self._loop), tick_ms, wheel_size)
        self._work: Callable[[int], object] = self.advance_clock
        self._handle: asyncio.TimerHandle | None = None
        self._due_ms = 0
        self._adds_before_round = ADDS_PER_ROUND
        self._stopped = False

    def add(self, task: TimerTask) -> None:
        """Run `task` on the loop once its `delay_ms` have passed; see SystemTimer.add."""
        super().add(task)
        queue = self._queue
        if queue.first_changed:
            # Reset before looking: a bucket that comes in between is seen, or sets it again.
            queue.first_changed = False
            call_on_loop(self._loop, self._schedule)
        self._adds_before_round -= 1
        if self._adds_before_round <= 0:
            self._adds_before_round = ADDS_PER_ROUND
            self._loop.call_soon_threadsafe(self._round)

    def start_reaper(self, name: str, work: Callable[[int], object]) -> Reaper:
        """Have the loop call `work(0)` when tasks are due; no thread is started."""
        del name
        self._work = work
        return _LoopReaper(self)

    def stop(self) -> None:
        """Wake the loop no more; what waits stays, to be advanced by hand. Idempotent."""
        self._stopped = True
        if not self._loop.is_closed():
            call_on_loop(self._loop, self._unschedule)

    def shutdown(self) -> None:
        """Drop what waits, refuse what comes, and wake the loop no more. Idempotent."""
        super().shutdown()
        self.stop()

    def _expire(self, tasks: list[TimerTask]) -> None:
        # At once and not by the executor, so that a purgatory's round purges what they complete.
        for task in tasks:
            try:
                if self._run is None:
                    task.run()
                else:
                    self._run(task.run)
            except Exception as failure:  # noqa: BLE001  one bad task must not lose the others
                message = f"timer {self.name}: an expired task failed"
                self._loop.call_exception_handler({"message": message, "exception": failure})

    def _schedule(self) -> None:
        """Have the loop wake up for the first bucket, unless it does by then."""
        due_ms = self.next_expiration_ms()
        if self._stopped or due_ms is None:
            return
        if self._handle is not None:
            if self._due_ms <= due_ms:
                return
            self._handle.cancel()
        self._due_ms = due_ms
        self._handle = self._loop.call_later(max(self.clock.seconds_until(due_ms), 0), self._wake)

    def _unschedule(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _wake(self) -> None:
        self._handle = None
        self._adds_before_round = ADDS_PER_ROUND
        self._round()

    def _round(self) -> None:
        if self._stopped:
            return
        try:
            self._work(0)
        finally:
            self._schedule()


class _LoopExecutor:
    """Runs tasks without delay, and none within the call that adds it."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def submit(self, fn: Callable[[], object], /) -> None:
        """Run `fn` in the next turn of the loop."""
        call_on_loop(self._loop, self._loop.call_soon, fn)


class _LoopReaper:
    """Stands for the reaper's thread in a purgatory."""

    __slots__ = ("_timer",)

    def __init__(self, timer: LoopTimer) -> None:
        self._timer = timer

    def shutdown(self) -> None:
        """Expire nothing from now on. Idempotent."""
        self._timer.stop()

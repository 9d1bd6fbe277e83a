"""Simulated broker processes: each can be paused, resumed and killed like an operating system's.

A `Scheduler` runs callbacks, in real or virtual time. A `Process` runs those of one broker, so that the broker
can be paused, resumed and killed as by SIGSTOP, SIGCONT and SIGKILL: a paused process keeps due callbacks and
runs them when it is resumed, a killed one drops them. A process that waits for its disk is blocked: it keeps its
callbacks too. Blocking is independent of pausing.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from broker_sim_purgatory import Clock

from broker_sim.runtime.action_queue import ActionQueue

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from broker_sim.runtime.scheduler import Scheduler


class Handle(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Cancel the callback; does nothing once it has run."""


class CallLater(Protocol):
    """Runs callbacks later in the broker's process, as `Process.call_later`."""

    def __call__(self, delay_ms: int, callback: Callable[..., object], *args: Any) -> Handle:
        """Run `callback(*args)` in `delay_ms` milliseconds."""


class MachineClock(Clock):
    """The clock of one machine: all machines share the monotonic time, each has a wall clock that can be set."""

    __slots__ = ("_clock", "_shift_ms", "now_ms")

    now_ms: Callable[[], int]

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shift_ms = 0
        # The other clock's method itself, to save a call: a replicated record reads the time a dozen times.
        self.now_ms = clock.now_ms

    def shift(self, shift_ms: int) -> None:
        """Move the wall clock forward, or back if negative; timers are not affected."""
        self._shift_ms += shift_ms

    def wall_clock_ms(self) -> int:
        """Return the milliseconds since 1970 by this machine's wall clock."""
        return self._clock.wall_clock_ms() + self._shift_ms

    def deadline_ms(self, delay_ms: int) -> int:
        """Return the `now_ms` at which the delay is over."""
        return self._clock.deadline_ms(delay_ms)

    def seconds_until(self, deadline_ms: int) -> float:
        """Return the seconds until then, negative if it has passed."""
        return self._clock.seconds_until(deadline_ms)

    def wait_until(self, condition: threading.Condition, deadline_ms: int) -> bool:
        """Wait as the other clock does."""
        return self._clock.wait_until(condition, deadline_ms)


class ProcessState(Enum):
    """The state of a process: started or resumed, paused, killed."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class Process:
    """Runs one node's callbacks in order. Thread rule: only the scheduler's thread."""

    __slots__ = (
        "_backlog",
        "_completes_soon",
        "_scheduler",
        "actions",
        "clock",
        "is_blocked",
        "name",
        "on_turn",
        "runs",
        "state",
    )

    def __init__(self, name: str, scheduler: Scheduler, clock: Clock | None = None) -> None:
        """`clock` is its machine's clock, by default the scheduler's."""
        self.name = name
        self.clock = scheduler.clock if clock is None else clock
        """The clock of all its timers; it goes on while the process is paused."""
        self.state = ProcessState.RUNNING
        """Set by `pause`, `resume` and `kill` only."""
        self.is_blocked = False
        """Whether it waits for its disk. Set by `block` and `unblock` only."""
        self.runs = True
        """Whether due callbacks run: the process is not paused, blocked or dead. Set by its own methods only."""
        self.actions = ActionQueue(self.report_error)
        """Completions that wait until the request that caused them has been handled."""
        self.on_turn: Callable[[], object] | None = None
        """Called after each callback; None unless the process is being watched."""
        self._scheduler = scheduler
        self._completes_soon = False
        self._backlog: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    def deliver(self, callback: Callable[..., object], *args: Any) -> None:
        """Run `callback(*args)` now if the process runs; keep it if paused or blocked, drop it if dead."""
        self.deliver_with(callback, args)

    def deliver_with(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        """Call `deliver(callback, *args)`, without unpacking the arguments."""
        if self.runs:
            callback(*args)
            if self.on_turn is not None:
                self.on_turn()
        elif self.state is not ProcessState.DEAD:
            self._backlog.append((callback, args))

    def complete_soon(self) -> None:
        """Run the queued completions in the next turn of the loop, or with the next request if that is earlier."""
        if self.actions.is_waiting and not self._completes_soon:
            self._completes_soon = True
            self.call_soon(self.actions.serve, self._completing)

    def _completing(self) -> None:
        self._completes_soon = False

    def after_serving(self, action: Callable[[], object]) -> None:
        """Run `action()` after the current request, or soon if there is none."""
        self.actions.add(action)
        self.complete_soon()

    def call_soon(self, callback: Callable[..., object], *args: Any) -> None:
        """Run `callback(*args)` after all callbacks that are already due."""
        self._scheduler.call_soon(self.deliver, callback, *args)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> None:
        """Run `callback(*args)` after all callbacks that are already due. Thread rule: any thread."""
        self._scheduler.call_soon_threadsafe(self.deliver, callback, *args)

    def call_later(self, delay_ms: int, callback: Callable[..., object], *args: Any) -> Handle:
        """Run `callback(*args)` in `delay_ms` milliseconds, or when the process is resumed."""
        return self._scheduler.call_later(delay_ms, self.deliver, callback, *args)

    def run_beside(self, work: Callable[[], Any], on_done: Callable[[Any], object], *, is_short: bool = False) -> None:
        """Run `work()`, which must not raise, in another thread, then `on_done(result)` in the process.

        The result is handled like a request. Work that `is_short` waits for other short work only.
        """
        self._scheduler.run_beside(work, partial(self.deliver, self.actions.serve, on_done), is_short=is_short)

    def wait_beside(self, work: Callable[[], Any], on_done: Callable[[Any], object]) -> None:
        """Run `work()` in a thread of its own, then `on_done(result)` in the process; work may block but not raise."""
        self._scheduler.wait_beside(work, partial(self.deliver, on_done))

    def pause(self) -> None:
        """Keep all callbacks from now on (SIGSTOP)."""
        if self.state is ProcessState.RUNNING:
            self.state = ProcessState.PAUSED
            self.runs = False

    def resume(self) -> None:
        """Run the kept callbacks in order and go on (SIGCONT); a blocked process goes on once it is unblocked."""
        if self.state is ProcessState.PAUSED:
            self.state = ProcessState.RUNNING
            self._go_on()

    def block(self) -> None:
        """Keep all callbacks until `unblock`: the process waits for its disk."""
        self.is_blocked = True
        self.runs = False

    def unblock(self) -> None:
        """Run the kept callbacks in order and go on; a paused process goes on once it is resumed."""
        self.is_blocked = False
        self._go_on()

    def _go_on(self) -> None:
        if self.is_blocked or self.state is not ProcessState.RUNNING:
            return
        self.runs = True
        while self._backlog and self.runs:
            callback, args = self._backlog.popleft()
            try:
                callback(*args)
            except Exception as error:  # noqa: BLE001 - the callbacks behind it must run too
                self.report_error(f"a callback of {self.name} failed", error)

    def report_error(self, message: str, error: Exception) -> None:
        """Report an unexpected error; see `Scheduler.report_error`."""
        self._scheduler.report_error(message, error)

    def kill(self) -> None:
        """Drop all callbacks from now on (SIGKILL); a restarted node gets a new process."""
        self.state = ProcessState.DEAD
        self.runs = False
        self._backlog.clear()


class PeriodicTask:
    """Runs a callback every `period_ms`, first after `delay_ms` (by default one period).

    As with Java's scheduleAtFixedRate a late run does not delay the next ones. Deliberate difference: a
    process that was paused makes up for all missed runs with a single one.
    """

    __slots__ = ("_callback", "_due_ms", "_handle", "_period_ms", "_process")

    def __init__(
        self, process: Process, period_ms: int, callback: Callable[[], object], delay_ms: int | None = None
    ) -> None:
        self._process = process
        # With a period of 0 ms, such as half of a limit of 1 ms, virtual time would stand still.
        self._period_ms = max(period_ms, 1)
        self._callback = callback
        first_ms = period_ms if delay_ms is None else delay_ms
        self._due_ms = process.clock.now_ms() + first_ms
        self._handle = process.call_later(first_ms, self._run)

    def _run(self) -> None:
        now_ms = self._process.clock.now_ms()
        missed = max(0, now_ms - self._due_ms) // self._period_ms
        self._due_ms += (missed + 1) * self._period_ms
        self._handle = self._process.call_later(max(0, self._due_ms - now_ms), self._run)
        self._callback()

    def cancel(self) -> None:
        """Stop running the callback."""
        self._handle.cancel()

"""An asyncio event loop in virtual time: no selector, no sockets, no threads that run by themselves.

When nothing is ready the clock jumps to the next timer. All that chance decides comes from `seed`.

Two ways to drive it. From inside, as any loop: `asyncio.Runner(loop_factory=VirtualEventLoop)`. From
outside, by a program that is not asynchronous itself: `step`, `run_until`, `advance_to_ns`.
"""

from __future__ import annotations

import gc
import math
import random
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast

from broker_sim_purgatory.clock import DEFAULT_WALL_START_MS

from broker_sim.runtime.virtual.clock import NS_PER_SECOND, LoopClock, delay_to_ns
from broker_sim.runtime.virtual.current import current_loop
from broker_sim.runtime.virtual.entering import Entering
from broker_sim.runtime.virtual.errors import EscapeError
from broker_sim.runtime.virtual.escapes import refuses_escapes
from broker_sim.runtime.virtual.futures import OrderedWeakSet
from broker_sim.runtime.virtual.guards import Guards, cancel_stop
from broker_sim.runtime.virtual.handles import VirtualHandle, VirtualTimerHandle, failure_of
from broker_sim.runtime.virtual.network import Network
from broker_sim.runtime.virtual.process_loop import ProcessLoop
from broker_sim.runtime.virtual.program import place_of_the_program
from broker_sim.runtime.virtual.signals import Signals
from broker_sim.runtime.virtual.standstill import Standstill
from broker_sim.runtime.virtual.task_order import order_named
from broker_sim.runtime.virtual.threads import Workers
from broker_sim.runtime.virtual.timers import TimerQueue
from broker_sim.runtime.virtual.trace import LoopTrace
from broker_sim.runtime.virtual.waiting import label

if TYPE_CHECKING:
    from asyncio import Future, Handle, TimerHandle
    from collections import deque
    from collections.abc import Awaitable, Callable, Generator
    from concurrent.futures import Executor
    from contextvars import Context

Result = TypeVar("Result")
DAY_S = 86_400.0
Order = Literal["fifo", "seeded"]


@refuses_escapes
class VirtualEventLoop(ProcessLoop):
    """One run in virtual time; used by one thread.

    `order="seeded"` lets chance choose which of the tasks that are ready runs first; callbacks that
    are no tasks keep their order, which asyncio promises and transports rely on. `limit_s` is how
    much virtual time the run may take, None for any. `trace_steps` puts every callback into the
    trace. Garbage is collected every `collect_every` callbacks and never in between, because
    finalizers and weak references act on the program. More than `max_steps_at_one_time` callbacks
    without progress of the clock are a livelock.
    """

    _ready: deque[Handle]
    _stopping: bool
    _thread_id: int | None

    def __init__(
        self,
        seed: int = 0,
        *,
        order: Order = "fifo",
        wall_start_ms: int = DEFAULT_WALL_START_MS,
        limit_s: float | None = DAY_S,
        trace_steps: bool = False,
        keep_events: int = 200,
        collect_every: int = 20_000,
        max_steps_at_one_time: int = 1_000_000,
    ) -> None:
        super().__init__()
        self.seed = seed
        self.clock = LoopClock(wall_start_ms)
        self.standstill = Standstill(self.clock)
        self.trace = LoopTrace(self.clock, keep_events)
        self.trace_steps = trace_steps
        self.after_step: Callable[[], object] | None = None
        """Called after each callback; what it raises ends the run. For invariants."""
        self.steps = 0
        """How many callbacks have run."""
        self._guards = Guards(self, limit_s, collect_every, max_steps_at_one_time)
        self.time_limit = self._guards.time_limit
        self._streams: dict[str, random.Random] = {}
        self.task_order = order_named(order, self.clock, self.stream("order").random)
        """What may let another callback run than the oldest; to be set before the run begins."""
        self._scheduled = TimerQueue()
        self._asyncgens = OrderedWeakSet()
        self._clock_resolution = 1e-9
        self._entering = Entering(self)
        self.workers = Workers(self)
        self._signals = Signals(self)
        self.network = Network(self)

    def stream(self, name: str) -> random.Random:
        """Return the random numbers of that name: a stream of their own that follows from the seed."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = random.Random(f"{self.seed}/{name}")
        return stream

    # -- time and callbacks -----------------------------------------------------------------------

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self.clock.now_ns / NS_PER_SECOND

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        """Run `callback(*args)` after what is ready."""
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = VirtualHandle(callback, args, self, context)
        if self.processes.halted and (holder := self.processes.holder(context)):
            holder.hold(self.clock.now_ns, handle)
        else:
            self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        """Run `callback(*args)` in `delay` seconds, rounded up to whole microseconds.

        Without a delay it runs after what is ready, as with `call_soon`.
        """
        return self.call_at_ns(self.clock.now_ns + delay_to_ns(delay), callback, args, context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        """Run `callback(*args)` when `time()` is `when`."""
        return self.call_later(when - self.time(), callback, *args, context=context)

    def call_at_ns(
        self, due_ns: int, callback: Callable[..., object], args: tuple[Any, ...] = (), context: Context | None = None
    ) -> TimerHandle:
        """Run `callback(*args)` at that time in nanoseconds, or now if it is over.

        Where the program asks for now again and again, time has to move first; see `Standstill`.
        """
        if self._closed:
            raise RuntimeError("Event loop is closed")
        if due_ns <= self.clock.now_ns:
            due_ns = self.standstill.due_ns()
        handle = VirtualTimerHandle(due_ns / NS_PER_SECOND, callback, args, self, context)
        if self.processes.halted and (holder := self.processes.holder(context)):
            holder.hold(due_ns, handle)
        elif due_ns > self.clock.now_ns:
            self._scheduled.push(due_ns, handle)
        else:
            self._ready.append(handle)
        return handle

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        self._scheduled.on_cancelled(handle)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        """Do as `call_soon`; from a thread that is no worker of this loop raises EscapeError."""
        if self._thread_id not in {None, threading.get_ident()} and current_loop() is not self:
            self.refuse(
                f"thread {threading.current_thread().name!r} runs in real time and calls "
                "call_soon_threadsafe; start it in the test, where it takes turns with the loop"
            )
        return self.call_soon(callback, *args, context=context)

    def refuse(self, what: str) -> NoReturn:
        """Raise EscapeError, with the line of the program; the run ends with it, whoever takes it."""
        error = EscapeError(f"{what}. It is asked for at\n  {place_of_the_program()}")
        if self._thread_id is not None:
            self._guards.take_failure({"message": "refused", "exception": error})
        raise error

    def sleep_blocking(self, seconds: float) -> None:
        """Let time pass while the whole loop stands still: what `time.sleep` in a coroutine does."""
        now_ns = self.clock.now_ns + delay_to_ns(seconds)
        self._guards.check_limit(now_ns)
        self._move_to(now_ns)
        self._scheduled.pop_due(now_ns, self._ready)

    # -- threads and signals ----------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> Future[Any]:
        """Run `func(*args)` in a thread that passes a baton with the loop, whatever the executor.

        Processes raise EscapeError.
        """
        if self._closed:
            raise RuntimeError("Event loop is closed")
        return self.workers.submit(partial(func, *args), executor)

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - asyncio's signature
    ) -> None:
        """Wait until all threads have ended, at the longest for `timeout` virtual seconds."""
        await self.workers.join(timeout)

    def close(self) -> None:
        """Close the loop; threads that still wait are ended, handlers of signals are removed."""
        if not self._closed:
            self.workers.abandon()
            self._signals.remove_all()
        super().close()

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        """Call `callback(*args)` on the loop for each such signal; for those that the program sends."""
        self._signals.add(sig, callback, args)

    def remove_signal_handler(self, sig: int) -> bool:
        """Remove a handler; return whether there was one."""
        return self._signals.remove(sig)

    # -- running from inside ----------------------------------------------------------------------

    def run_until_complete(self, future: Generator[Any, None, Result] | Awaitable[Result]) -> Result:
        """Run until the future is done and return its result. Raises as `run_forever`."""
        try:
            return super().run_until_complete(cast("Awaitable[Result]", future))
        except BaseException:
            cancel_stop(self._ready)
            raise

    def run_forever(self) -> None:
        """Run until `stop`; raises the first failure that no code of the program takes."""
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            super().run_forever()
        finally:
            if was_enabled:
                gc.enable()

    def _run_once(self) -> None:
        """Run rounds until `stop`; a round is what is ready when it begins."""
        ready = self._ready
        while True:
            if not (ready or self._stopping or self.move_to_next()):
                raise self._guards.deadlock()
            if self.task_order is not None or self.trace_steps or self.after_step is not None or self.is_debugged:
                for _ in range(len(ready)):
                    self.run_next()
            else:
                self._run_round(ready)
            if self._stopping:
                return

    def _run_round(self, ready: deque[Handle]) -> None:
        guards, size = self._guards, len(ready)
        for _ in range(size):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            try:  # what `handle._run()` does, without a call of its own for each callback
                handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - as asyncio
                self.call_exception_handler(failure_of(handle, error))
        # From Python 3.12 on an error's traceback has this frame: with the handle in it, a task that
        # failed and that nobody awaits would not be noticed before garbage is collected.
        handle = None  # type: ignore[assignment]
        self.steps += size
        if guards.failure is not None:
            guards.raise_failure()
        if self.steps >= guards.checkpoint:
            guards.on_checkpoint()

    def run_next(self) -> Handle:
        """Run one callback of those that are ready, with all that watches them; return its handle."""
        guards, ready = self._guards, self._ready
        if self.task_order is not None:
            self.task_order.arrange(ready)
        handle = ready.popleft()
        self.steps += 1
        try:
            if not handle._cancelled:
                if self.trace_steps:
                    self.trace.record("step", label(handle))
                handle._run()
                if guards.failure is not None:
                    guards.raise_failure()
                if self.after_step is not None:
                    self.after_step()
            if self.steps >= guards.checkpoint:
                guards.on_checkpoint()
            return handle
        finally:
            del handle  # as in a round

    def move_to_next(self, until_ns: float = math.inf) -> bool:
        """Jump to the next timer and make ready what is due; False if none is due by `until_ns`."""
        due_ns = self._scheduled.next_due_ns()
        if due_ns is None or due_ns > until_ns:
            return False
        if due_ns > self.time_limit.limit_ns:
            self._guards.check_limit(due_ns)
        self._move_to(due_ns)
        self._scheduled.pop_due(due_ns, self._ready)
        return True

    def _move_to(self, now_ns: int) -> None:
        standstill = self.standstill
        if now_ns != standstill.nudged_ns:
            standstill.progress_ns = now_ns
        self.clock.move_to_ns(now_ns)

    def _write_to_self(self) -> None:
        """Do nothing: nobody sleeps, so nobody has to be woken."""

    def __del__(self) -> None:
        """Do nothing: an unclosed loop holds nothing that has to be given back."""

    def is_ready(self) -> bool:
        """Whether anything runs without a move of the clock."""
        return bool(self._ready)

    # -- running from outside ---------------------------------------------------------------------

    def next_due_ns(self) -> int | None:
        """Return when the next callback runs; None if nothing is left to happen."""
        return self.clock.now_ns if self._ready else self._scheduled.next_due_ns()

    def step(self) -> bool:
        """Run one callback, jumping to its time first; False if nothing is left to happen."""
        if not self._ready and not self.move_to_next():
            return False
        with self._entering:
            self.run_next()
        return True

    def run_until(self, condition: Callable[[], object], until_ns: int | None = None) -> bool:
        """Step until the condition holds, at the latest until that time; return whether it holds.

        If it does not, time has moved to `until_ns`. Without one, VirtualDeadlockError is raised
        where nothing is left to happen.
        """
        end_ns = math.inf if until_ns is None else until_ns
        with self._entering:
            while not condition():
                if self._ready or self.move_to_next(end_ns):
                    self.run_next()
                elif until_ns is None:
                    raise self._guards.deadlock()
                else:
                    self._move_to(max(until_ns, self.clock.now_ns))
                    return False
        return True

    def run_now(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function as callbacks are called, at once and without time; return its result."""
        if self.is_running():
            return function(*args, **kwargs)
        with self._entering:
            return function(*args, **kwargs)

    def advance_to_ns(self, now_ns: int) -> None:
        """Let time pass until then, with everything that is due in it."""
        ready, run_next = self._ready, self.run_next
        with self._entering:
            while ready or self.move_to_next(now_ns):
                run_next()
            self._move_to(max(now_ns, self.clock.now_ns))

    # -- failures ---------------------------------------------------------------------------------

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Take a failure that no code of the program took: it ends the run.

        With `set_exception_handler` a program takes them itself, as in asyncio.
        """
        if not self._closed:
            self._guards.take_failure(context)
        elif not isinstance(context.get("exception"), EscapeError | None):  # a run ends with those
            super().default_exception_handler(context)

    def raise_failure(self) -> None:
        """Raise the failure that ends the run, if there is one; the loop does so by itself."""
        self._guards.raise_failure()

"""The core of one virtual loop, shared by all of the loop's parts."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from broker_sim.runtime.virtual.core.clock import NS_PER_SECOND, LoopClock
from broker_sim.runtime.virtual.core.errors import EscapeError, UnhandledError
from broker_sim.runtime.virtual.core.locations import program_location
from broker_sim.runtime.virtual.core.processes import Processes
from broker_sim.runtime.virtual.core.queue import CallbackQueue, VirtualHandle, VirtualTimerHandle
from broker_sim.runtime.virtual.core.trace import LoopTrace

if TYPE_CHECKING:
    from asyncio import Handle, TimerHandle
    from collections.abc import Callable
    from contextvars import Context


class OutsideProgram(Protocol):
    """A program in an OS process of its own."""

    def describe(self) -> str:
        """Return what each of its threads waits for, one line each."""

    def kill(self) -> None:
        """Kill it at once."""


class Core:
    """Time, callbacks, processes, chance, the trace, and the first failure. Thread rule: the loop's thread."""

    def __init__(self, loop: asyncio.BaseEventLoop, seed: int, wall_start_ms: int, keep_events: int) -> None:
        self.loop = loop
        self.seed = seed
        self.clock = LoopClock(wall_start_ms)
        self.trace = LoopTrace(self.clock, keep_events)
        self.queue = CallbackQueue(loop, self.clock)
        self.processes = Processes(loop, self.queue, self.trace)
        self._ready = self.queue.ready
        self.failure: BaseException | None = None
        """The first failure that the program has not handled."""
        self.programs: list[OutsideProgram] = []
        """Programs in OS processes that take part in the run; none outlives the loop."""
        self._streams: dict[str, random.Random] = {}
        self._numbers = 0

    # -- callbacks --------------------------------------------------------------------------------

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Handle:
        """Run `callback(*args)` after all callbacks that are ready."""
        loop = self.loop
        if loop._closed:  # type: ignore[attr-defined]
            raise RuntimeError("Event loop is closed")
        handle = VirtualHandle(callback, args, loop, context)
        if self.processes.halted and (holder := self.processes.holder(context)):
            holder.hold(self.clock.now_ns, handle)
        else:
            self._ready.append(handle)
        return handle

    def call_at_ns(
        self, due_ns: int, callback: Callable[..., object], args: tuple[Any, ...] = (), context: Context | None = None
    ) -> TimerHandle:
        """Run `callback(*args)` at that time in nanoseconds, or now if it has passed.

        If the program keeps scheduling for the current time, time moves first; see `BusyWait`.
        """
        loop = self.loop
        if loop._closed:  # type: ignore[attr-defined]
            raise RuntimeError("Event loop is closed")
        if due_ns <= self.clock.now_ns:
            due_ns = self.queue.busy_wait.due_ns()
        handle = VirtualTimerHandle(due_ns / NS_PER_SECOND, callback, args, loop, context)
        if self.processes.halted and (holder := self.processes.holder(context)):
            holder.hold(due_ns, handle)
        elif due_ns > self.clock.now_ns:
            self.queue.timers.push(due_ns, handle)
        else:
            self._ready.append(handle)
        return handle

    # -- what repeats in each run -----------------------------------------------------------------

    def stream(self, name: str) -> random.Random:
        """Return the random generator of that name; each name has a stream of its own that follows from the seed."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = random.Random(f"{self.seed}/{name}")
        return stream

    def next_number(self) -> int:
        """Return 1, 2, 3, ...: hashes for objects whose addresses differ between runs."""
        self._numbers += 1
        return self._numbers

    # -- failures ---------------------------------------------------------------------------------

    def refuse(self, what: str) -> NoReturn:
        """Raise EscapeError with the program's line. The run fails with it, even if the program catches it."""
        error = EscapeError(f"{what}. The call is at\n  {program_location()}")
        if self.loop.is_running():
            self.take_failure({"message": "refused", "exception": error})
        raise error

    def take_failure(self, context: dict[str, Any]) -> None:
        """Keep the first failure that the loop's exception handler gets, for `raise_failure`."""
        message = context.get("message") or "Unhandled exception in event loop"
        error = context.get("exception") or UnhandledError(message)
        task = context.get("task") or context.get("future")
        name = f" in task {task.get_name()}" if isinstance(task, asyncio.Task) else ""
        error.add_note(f"{message}{name}, {self.when()}")
        if self.failure is None:
            self.failure = error

    def raise_failure(self) -> None:
        """Raise the failure, if there is one."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def when(self) -> str:
        """Return the virtual time and the seed in words, for messages."""
        return f"at {self.loop.time()} s of virtual time (seed {self.seed})"

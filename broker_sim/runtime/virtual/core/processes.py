"""Programs that share a virtual loop and can be killed or frozen separately, like processes.

Every callback of a loop belongs to the process that its context names. Those of the test, the brokers and the
network belong to none. All that a process starts (tasks, connections, servers, timers, threads) belongs to it.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
import weakref
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from broker_sim.runtime.event_log import quiet_logs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator

    from broker_sim.runtime.virtual.core.queue import CallbackQueue
    from broker_sim.runtime.virtual.core.trace import LoopTrace

Result = TypeVar("Result")
State = Literal["running", "frozen", "dead"]
AWAITS_IN_FINALLY: Final = 20
"""Maximum number of awaits in a discarded coroutine's `finally` blocks; after that it is abandoned."""


class Belonging(Protocol):
    """A port or a connection of a process, maintained by the network."""

    def on_owner_gone(self) -> None:
        """Close it because its process was killed."""


class Process:
    """One program in a virtual loop, on a host and with a wall clock of its own.

    `loop.process` makes it. Used from the loop's thread only.
    """

    def __init__(self, processes: Processes, name: str, host: str, context: Context) -> None:
        """`context` is its host's, and is this process's own from now on."""
        self.name = name
        self.host = host
        """Its name in faults of the network: `loop.network.cut(process.host, "*")`."""
        self.clock_offset_ns = 0
        """Nanoseconds by which its wall clock is ahead of the loop's."""
        self.connections: dict[Belonging, None] = {}
        """Its ends of open connections; maintained by the network."""
        self.ports: dict[Belonging, None] = {}
        """Ports on which it listens or has listened; maintained by the network."""
        self.tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self.generators: weakref.WeakSet[AsyncGenerator[Any, Any]] = weakref.WeakSet()
        self._processes = processes
        self._state: State = "running"
        self._held: list[tuple[int, asyncio.Handle]] = []
        self._kept: list[object] = []
        """Objects of the killed process, kept so that they are not finalized before `dispose`."""
        self._context = context
        context.run(PROCESS.set, self)

    def __repr__(self) -> str:
        return f"<Process {self.name!r} on {self.host!r}: {self._state}>"

    @property
    def is_dead(self) -> bool:
        """Whether it has been killed."""
        return self._state == "dead"

    @property
    def state(self) -> State:
        """Whether it runs, is frozen, or has been killed."""
        return self._state

    def is_overdue(self, now_ns: int) -> bool:
        """Whether one of its callbacks became due by `now_ns` while it was frozen."""
        return any(due_ns <= now_ns for due_ns, _ in self._held)

    def start(self, coroutine: Coroutine[Any, Any, Result], *, name: str | None = None) -> asyncio.Task[Result]:
        """Run a coroutine as a task of this process; return the task, which others may await.

        Raises RuntimeError if the process was killed.
        """
        if self.is_dead:
            coroutine.close()
        self._require_alive("start a task in")
        context = self._context.copy()
        return self._processes.loop.create_task(coroutine, name=name or self.name, context=context)

    def call(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
        """Call a function as part of this process: all that it starts belongs to the process."""
        self._require_alive("call a function in")
        return self._context.copy().run(partial(function, *args, **kwargs))

    def step_clock(self, seconds: float) -> None:
        """Set its wall clock ahead, or back if negative; `time.monotonic` and timers go on as before."""
        self.clock_offset_ns += round(seconds * 1e9)

    def freeze(self) -> None:
        """Stop it until `resume`, as SIGSTOP does; data that others send waits.

        Raises RuntimeError if it is not running.
        """
        if self._state != "running":
            raise RuntimeError(f"{self!r} cannot be frozen: it is not running")
        self._halt("frozen")

    def resume(self) -> None:
        """Go on after `freeze`; timers that became due meanwhile run at once, in their order.

        Raises RuntimeError if it is not frozen.
        """
        if self._state != "frozen":
            raise RuntimeError(f"{self!r} cannot be resumed: it is not frozen")
        self._set_state("running")
        entries, self._held = self._held, []
        self._processes.queue.take_back(entries)

    def kill(self) -> None:
        """Kill it at once, as SIGKILL does: no `finally` runs, and its host closes its connections.

        Its objects are finalized only when the loop is closed. A task that kills its own process runs on to its next
        await. Idempotent.
        """
        if self.is_dead:
            return
        self._halt("dead")
        arriving = [entry for entry in self._held if _is_arrival(entry[1])]
        self._held = [entry for entry in self._held if not _is_arrival(entry[1])]
        for _, handle in arriving:
            handle._context = self._processes.outside  # type: ignore[attr-defined]
        self._processes.queue.take_back(arriving)
        for port in list(self.ports):
            port.on_owner_gone()
        for connection in list(self.connections):
            self._kept.append(connection)
            connection.on_owner_gone()
        self._keep_objects()

    def _halt(self, state: State) -> None:
        self._set_state(state)
        self._held += self._processes.queue.take_out(self._owns)

    def _set_state(self, state: State) -> None:
        self._processes.on_state(self, self._state, state)
        self._state = state

    def _owns(self, handle: asyncio.Handle) -> bool:
        return handle._context.get(PROCESS) is self  # type: ignore[attr-defined]

    def hold(self, due_ns: int, handle: asyncio.Handle) -> None:
        """Keep a callback that was scheduled while the process is frozen or dead."""
        self._held.append((due_ns, handle))

    def _keep_objects(self) -> None:
        """Keep tasks and generators that would otherwise be finalized or cancelled now; silence their warnings."""
        for task in self.tasks:
            if task.done():
                if not task.cancelled():
                    task.exception()
            else:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                asyncio.tasks._unregister_task(task)
            self._kept.append(task)  # even a finished task may hold open resources, in its traceback
        for generator in self.generators:
            self._processes.loop._asyncgens.discard(generator)  # type: ignore[attr-defined]
            self._kept.append(generator)

    def dispose(self) -> None:
        """Drop the objects that a killed process held."""
        kept, self._kept = self._kept, []
        self._held.clear()
        for task in kept:
            if isinstance(task, asyncio.Task):
                _close(task.get_coro())

    def _require_alive(self, what: str) -> None:
        if self.is_dead:
            raise RuntimeError(f"cannot {what} {self!r}: create a new one with loop.process")


class Processes:
    """All processes of one loop."""

    def __init__(self, loop: asyncio.BaseEventLoop, queue: CallbackQueue, trace: LoopTrace) -> None:
        self.loop = loop
        self.queue = queue
        self.outside = Context()
        """A context without a process: that of the hosts' kernels."""
        self._trace = trace
        self._all: list[Process] = []
        self.halted = 0
        """Number of frozen and killed processes; while it is 0 no callback has to be held."""

    def __bool__(self) -> bool:
        return bool(self._all)

    def __iter__(self) -> Iterator[Process]:
        return iter(self._all)

    def add(self, name: str, host: str, context: Context) -> Process:
        """Make a process. Raises ValueError if one of that name is alive."""
        if any(process.name == name and not process.is_dead for process in self._all):
            raise ValueError(f"process {name!r} is alive: kill it before it starts again")
        process = Process(self, name, host, context)
        self._all.append(process)
        return process

    def on_state(self, process: Process, before: State, after: State) -> None:
        """Count a process that stops or goes on."""
        self.halted += (after != "running") - (before != "running")
        self._trace.record("process", process.name, after)

    def holder(self, context: Context | None) -> Process | None:
        """Return the process of a context (None: the current one) if it is frozen or dead, else None."""
        process = PROCESS.get() if context is None else context.get(PROCESS)
        return None if process is None or process.state == "running" else process

    def on_task(self, task: asyncio.Task[Any], context: Context | None) -> None:
        """Record which process the task belongs to."""
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is not None:
            process.tasks.add(task)

    def kill_frozen(self) -> None:
        """Kill the frozen processes, which would never end by themselves."""
        for process in self._all:
            if process.state == "frozen":
                process.kill()

    def dispose(self) -> None:
        """Drop the objects of killed processes: `finally` blocks run on the closed loop, without warnings or logs."""
        if any(process.is_dead for process in self._all):
            with _unheard(), _running(self.loop):
                for process in self._all:
                    process.dispose()
                gc.collect()


def _is_arrival(handle: asyncio.Handle) -> bool:
    """Whether the handle is data on its way through the network, which arrives even if its receiver is dead."""
    owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return getattr(type(owner), "outlives_receiver", False)


@contextmanager
def _unheard() -> Iterator[None]:
    """Suppress the warnings and logs of programs that are finalized long after they were killed."""
    with quiet_logs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _running(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Make this loop the running one, although it is closed.

    Otherwise `asyncio.get_event_loop()` makes a new loop in Python 3.11 that nobody closes.
    """
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(before)


def _close(coroutine: Any) -> None:
    for _ in range(AWAITS_IN_FINALLY):
        with suppress(BaseException):
            coroutine.close()
            return


PROCESS: ContextVar[Process | None] = ContextVar("virtual_process", default=None)
"""The process of the running code; None for the test, the brokers and the network.

Tasks and callbacks inherit it.
"""

"""An asyncio event loop in virtual time: no selector, no sockets, no threads that run by themselves.

When nothing is ready the clock jumps to the next timer. All randomness follows from `seed`.

It can be run like any loop, `asyncio.Runner(loop_factory=VirtualEventLoop)`, or be driven from outside by a
program that is not asynchronous itself: `step`, `run_until`, `advance_to_ns`.

The loop is asyncio's interface to its parts: the core (time, callbacks, processes), the network, threads,
signals, and guards that end a run which would not end. The parts depend on the core, never on the loop.
"""

from __future__ import annotations

import asyncio
import gc
import math
import threading
from asyncio.base_events import _run_until_complete_cb  # type: ignore[attr-defined]
from asyncio.events import _get_running_loop
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast

from broker_sim_purgatory.clock import DEFAULT_WALL_START_MS

from broker_sim.runtime.virtual.core.clock import NS_PER_SECOND, delay_to_ns
from broker_sim.runtime.virtual.core.core import Core
from broker_sim.runtime.virtual.core.errors import EscapeError
from broker_sim.runtime.virtual.core.futures import NumberedFuture, NumberedTask, OrderedWeakSet
from broker_sim.runtime.virtual.core.locations import label
from broker_sim.runtime.virtual.core.processes import PROCESS
from broker_sim.runtime.virtual.core.queue import failure_of
from broker_sim.runtime.virtual.escapes import refuses_escapes
from broker_sim.runtime.virtual.guards import Guards
from broker_sim.runtime.virtual.network.network import Network
from broker_sim.runtime.virtual.network.tcp import Tcp
from broker_sim.runtime.virtual.network.tls import Tls
from broker_sim.runtime.virtual.running_loop import RunningLoop, outside_of
from broker_sim.runtime.virtual.signals import Signals
from broker_sim.runtime.virtual.task_order import order_named
from broker_sim.runtime.virtual.threads import Workers, current_worker

if TYPE_CHECKING:
    import random
    import socket
    import ssl as ssl_module
    from asyncio import Future, Handle, TimerHandle
    from collections import deque
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
    from concurrent.futures import Executor
    from contextvars import Context

    from broker_sim.runtime.virtual.core.processes import Process
    from broker_sim.runtime.virtual.network.ports import BoundPort
    from broker_sim.runtime.virtual.network.tcp import AddressInfo

Result = TypeVar("Result")
DAY_S = 86_400.0
Order = Literal["fifo", "seeded"]
_EAGER: object = getattr(asyncio, "eager_task_factory", ...)
"""asyncio's factory of eager tasks, from Python 3.12 on; its tasks get numbers too."""


@refuses_escapes
class VirtualEventLoop(asyncio.BaseEventLoop):
    """One run in virtual time; used by one thread.

    `order="seeded"` chooses at random which ready task runs first; other callbacks keep their order, which
    asyncio promises and transports rely on. `limit_s` is the maximum virtual time of the run, None for no limit.
    `trace_steps` puts every callback into the trace. Garbage is collected every `collect_every` callbacks and never
    in between, because finalizers and weak references act on the program. More than `max_steps_at_one_time`
    callbacks without progress of the clock are a livelock.
    """

    _closed: bool
    _debug: bool
    _task_factory: object | None
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
        self.core = core = Core(self, seed, wall_start_ms, keep_events)
        # asyncio calls this for every callback: a method in between would add 0.5 us to 1.8 us.
        self.call_soon = core.call_soon  # type: ignore[assignment,method-assign]
        self.call_at_ns = core.call_at_ns
        self.seed = seed
        self.clock = core.clock
        self.trace = core.trace
        self.processes = core.processes
        self.network = Network(core)
        self.tcp = Tcp(core, self.network)
        self.workers = Workers(core)
        self.trace_steps = trace_steps
        self.after_step: Callable[[], object] | None = None
        """Called after each callback, to check invariants; an exception ends the run."""
        self.steps = 0
        """Number of callbacks that have run."""
        self.task_order = order_named(order, self.clock, self.stream("order").random)
        """Chooses the callback that runs next; None for first in, first out. To be set before the run begins."""
        self._guards = Guards(core, self.workers, limit_s, collect_every, max_steps_at_one_time)
        self.time_limit = self._guards.time_limit
        self._queue = core.queue
        self._scheduled = core.queue.timers
        self._signals = Signals(self)
        self._running_loop = RunningLoop(self)
        self._task_numbers = 0
        self._asyncgens = OrderedWeakSet()
        self._clock_resolution = 1e-9

    def stream(self, name: str) -> random.Random:
        """Return the random generator of that name; each name has a stream of its own that follows from the seed."""
        return self.core.stream(name)

    # -- time and callbacks -----------------------------------------------------------------------

    def time(self) -> float:
        """Return the virtual seconds since the loop was created."""
        return self.clock.now_ns / NS_PER_SECOND

    def wall_clock_ns(self) -> int:
        """Return the wall clock of the running code's process in nanoseconds since 1970."""
        process = PROCESS.get() if self.processes else None
        ahead_ns = 0 if process is None else process.clock_offset_ns
        return self.clock.wall_clock_ns() + ahead_ns

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        """Run `callback(*args)` in `delay` seconds, rounded up to whole microseconds.

        Without a delay it runs after all ready callbacks, as with `call_soon`.
        """
        return self.call_at_ns(self.clock.now_ns + delay_to_ns(delay), callback, args, context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        """Run `callback(*args)` when `time()` is `when`."""
        return self.call_later(when - self.time(), callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        self._scheduled.on_cancelled(handle)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        """Run `callback(*args)` after all ready callbacks. Raises EscapeError in a thread that is no worker of it."""
        if self._thread_id not in {None, threading.get_ident()} and current_loop() is not self:
            self.refuse(
                f"thread {threading.current_thread().name!r} runs in real time and calls "
                "call_soon_threadsafe; start it in the test, where it takes turns with the loop"
            )
        return self.call_soon(callback, *args, context=context)

    def refuse(self, what: str) -> NoReturn:
        """Raise EscapeError with the program's line. The run fails with it, even if the program catches it."""
        self.core.refuse(what)

    def sleep_blocking(self, seconds: float) -> None:
        """Let time pass while the whole loop is blocked, as `time.sleep` in a coroutine does."""
        now_ns = self.clock.now_ns + delay_to_ns(seconds)
        self._guards.check_limit(now_ns)
        self._queue.move_to_ns(now_ns)

    # -- processes, tasks and futures -------------------------------------------------------------

    def process(self, name: str, *, host: str | None = None) -> Process:
        """Return a new process, on a host of the same name unless `host` is given.

        It can be killed and frozen without affecting anything else in the loop. Raises ValueError while one of that
        name is alive.
        """
        host = name if host is None else host
        with self.network.on_host(host):
            return self.processes.add(name, host, copy_context())

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future whose hash is the same in each run."""
        return NumberedFuture(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None, **options: Any
    ) -> asyncio.Task[Any]:
        """Return a task whose hash and name are the same in each run; it belongs to the process of its context."""
        if self._closed:
            raise RuntimeError("Event loop is closed")
        if name is None:
            self._task_numbers += 1
            name = f"{getattr(coro, '__qualname__', 'task')}-{self._task_numbers}"
        if self._task_factory is _EAGER:
            options["eager_start"] = True
        task: asyncio.Task[Any]
        if self._task_factory is None or self._task_factory is _EAGER:
            task = NumberedTask(coro, loop=self, name=name, context=context, **options)
        else:
            task = super().create_task(coro, name=name, context=context, **options)
        if self.processes:
            self.processes.on_task(task, context)
        return task

    def _asyncgen_firstiter_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        super()._asyncgen_firstiter_hook(agen)  # type: ignore[misc]
        process = PROCESS.get()
        if process is not None:
            process.generators.add(agen)

    # -- the network ------------------------------------------------------------------------------

    def bind(self, host: str | None, port: int) -> BoundPort:
        """Take a port of the virtual network, 0 for a free one; for `create_server(sock=...)`.

        Raises OSError if it is taken.
        """
        return self.tcp.bind(host, port)

    async def getaddrinfo(  # type: ignore[override]
        self, host: str | bytes | None, port: str | int | None, **_: int
    ) -> list[AddressInfo]:
        """Return the one address of the host. Raises `socket.gaierror` if there is no such host."""
        return self.tcp.address_info(host, port)

    async def getnameinfo(
        self,
        sockaddr: tuple[str, int] | tuple[str, int, int, int],
        flags: int = 0,  # noqa: ARG002 - asyncio's signature
    ) -> tuple[str, str]:
        """Return address and port unchanged: there is no reverse lookup."""
        return sockaddr[0], str(sockaddr[1])

    async def create_server(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: Any = None, port: Any = None, **options: Any
    ) -> asyncio.Server:
        """Serve on the virtual network; see `Tcp.create_server`."""
        return await self.tcp.create_server(protocol_factory, host, port, **options)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: Any = None, port: Any = None, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect over the virtual network; see `Tcp.create_connection`."""
        return await self.tcp.create_connection(protocol_factory, host, port, **options)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Connect over the virtual network, for `create_connection(sock=sock)`: how aiohttp connects."""
        await self.tcp.connect_socket(sock, address)

    def _start_serving(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        sock: BoundPort,
        sslcontext: ssl_module.SSLContext | None,
        server: asyncio.Server,
        backlog: int,
        ssl_handshake_timeout: float | None,
        ssl_shutdown_timeout: float | None,
    ) -> None:
        del backlog
        tls = None
        if sslcontext is not None:
            tls = Tls(sslcontext, ssl_handshake_timeout, ssl_shutdown_timeout, server_side=True)
        self.tcp.start_serving(protocol_factory, sock, server, tls)

    def _stop_serving(self, sock: BoundPort) -> None:
        sock.close()

    # -- threads and signals ----------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> Future[Any]:
        """Run `func(*args)` in a thread that takes turns with the loop, whatever the executor.

        Raises EscapeError for a process pool.
        """
        if self._closed:
            raise RuntimeError("Event loop is closed")
        return self.workers.submit(partial(func, *args), executor)

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - asyncio's signature
    ) -> None:
        """Wait until all threads have ended, for at most `timeout` virtual seconds."""
        await self.workers.join(timeout)

    def close(self) -> None:
        """Close the loop, end threads and programs that still wait, and remove signal handlers."""
        if not self._closed:
            for program in list(self.core.programs):
                program.kill()
            self.workers.abandon()
            self._signals.remove_all()
        super().close()
        self.processes.dispose()

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        """Call `callback(*args)` on the loop for each such signal that the program sends to itself."""
        self._signals.add(sig, callback, args)

    def remove_signal_handler(self, sig: int) -> bool:
        """Remove a handler; return whether there was one."""
        return self._signals.remove(sig)

    # -- running from inside ----------------------------------------------------------------------

    def run_until_complete(self, future: Generator[Any, None, Result] | Awaitable[Result]) -> Result:
        """Run until the future is done and return its result. Raises as `run_forever`."""
        try:
            with outside_of(_outer_loop()):
                return super().run_until_complete(cast("Awaitable[Result]", future))
        except BaseException:
            self._cancel_stop()
            raise

    def _cancel_stop(self) -> None:
        """Cancel the stop that a done future has scheduled, if its last step has also failed the run.

        It would otherwise stop the next run of the loop, in which the tasks get time to end.
        """
        for handle in self._ready:
            if handle._callback is _run_until_complete_cb:  # type: ignore[attr-defined]
                handle.cancel()

    def run_forever(self) -> None:
        """Run until `stop`. Raises the first failure that the program does not handle."""
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            super().run_forever()
        finally:
            if was_enabled:
                gc.enable()

    def _run_once(self) -> None:
        """Run rounds until `stop`; a round runs the callbacks that are ready when it begins."""
        ready = self._ready
        while True:
            if not (ready or self._stopping or self.move_to_next()):
                raise self._guards.deadlock()
            if self.task_order is not None or self.trace_steps or self.after_step is not None or self._debug:
                for _ in range(len(ready)):
                    self.run_next()
            else:
                self._run_round(ready)
            if self._stopping:
                return

    def _run_round(self, ready: deque[Handle]) -> None:
        core, size = self.core, len(ready)
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
        # From Python 3.12 on an error's traceback has this frame: with the handle in it, the failure of a task
        # # that nobody awaits would not be noticed before the next garbage collection.
        handle = None  # type: ignore[assignment]
        self.steps += size
        if core.failure is not None:
            core.raise_failure()
        if self.steps >= self._guards.checkpoint:
            self._guards.on_checkpoint(self.steps, self._next_steps())

    def run_next(self) -> Handle:
        """Run one ready callback, with trace, `after_step` and order; return its handle."""
        core, ready = self.core, self._ready
        if self.task_order is not None:
            self.task_order.arrange(ready)
        handle = ready.popleft()
        self.steps += 1
        try:
            if not handle._cancelled:
                if self.trace_steps:
                    self.trace.record("step", label(handle))
                handle._run()
                if core.failure is not None:
                    core.raise_failure()
                if self.after_step is not None:
                    self.after_step()
            if self.steps >= self._guards.checkpoint:
                self._guards.on_checkpoint(self.steps, self._next_steps())
            return handle
        finally:
            del handle  # as in a round

    def _next_steps(self) -> Iterator[Handle]:
        """Run callbacks one by one and yield their handles, until none is left."""
        while self._ready or self.move_to_next():
            yield self.run_next()

    def move_to_next(self, until_ns: float = math.inf) -> bool:
        """Jump to the next timer and make all due callbacks ready; return False if none is due by `until_ns`."""
        due_ns = self._scheduled.next_due_ns()
        if due_ns is None or due_ns > until_ns:
            return False
        if due_ns > self.time_limit.limit_ns:
            self._guards.check_limit(due_ns)
        self._queue.move_to_ns(due_ns)
        return True

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps, so it need not be woken."""

    def __del__(self) -> None:
        """Do nothing: an unclosed loop holds no resources."""

    # -- running from outside ---------------------------------------------------------------------

    def next_due_ns(self) -> int | None:
        """Return the time of the next callback in ns; None if there is none."""
        return self._queue.next_due_ns()

    def step(self) -> bool:
        """Run one callback, jumping to its time first; return False if there is none."""
        if not self._ready and not self.move_to_next():
            return False
        with self._running_loop:
            self.run_next()
        return True

    def run_until(self, condition: Callable[[], object], until_ns: int | None = None) -> bool:
        """Step until the condition is true or `until_ns` is reached; return whether it is true.

        If it is not, time has moved to `until_ns`. Without `until_ns`, VirtualDeadlockError is raised when no
        callback is left.
        """
        end_ns = math.inf if until_ns is None else until_ns
        with self._running_loop:
            while not condition():
                if self._ready or self.move_to_next(end_ns):
                    self.run_next()
                elif until_ns is None:
                    raise self._guards.deadlock()
                else:
                    self._queue.move_to_ns(max(until_ns, self.clock.now_ns))
                    return False
        return True

    def run_now(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function immediately, as a callback would be called; return its result."""
        if self.is_running():
            return function(*args, **kwargs)
        with self._running_loop:
            return function(*args, **kwargs)

    def advance_to_ns(self, now_ns: int) -> None:
        """Move the time to `now_ns`, and run all callbacks that are due by then."""
        ready, run_next = self._ready, self.run_next
        with self._running_loop:
            while ready or self.move_to_next(now_ns):
                run_next()
            self._queue.move_to_ns(max(now_ns, self.clock.now_ns))

    # -- failures ---------------------------------------------------------------------------------

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """End the run with a failure that the program has not handled.

        With `set_exception_handler` a program handles them itself, as in asyncio.
        """
        if not self._closed:
            self.core.take_failure(context)
        elif not isinstance(context.get("exception"), EscapeError | None):  # these end the run anyway
            super().default_exception_handler(context)

    def raise_failure(self) -> None:
        """Raise the failure that ends the run, if there is one; the loop calls this itself."""
        self.core.raise_failure()


def _outer_loop() -> asyncio.AbstractEventLoop | None:
    """Return the real loop that runs in this thread, such as a notebook's; None without one."""
    loop = _get_running_loop()
    return None if isinstance(loop, VirtualEventLoop) else loop


def current_loop() -> VirtualEventLoop | None:
    """Return the virtual loop that runs in this thread, or whose worker this thread is; None in real time.

    Other threads, and other loops, are in real time.
    """
    loop = _get_running_loop()
    if loop is None:
        worker = current_worker()
        if worker is None:
            return None
        loop = worker.loop
    return loop if isinstance(loop, VirtualEventLoop) else None

"""Threads in virtual time: `asyncio.to_thread`, executors and the program's own, one at a time.

A worker runs only while the loop's thread waits for it: they pass a baton. A worker gives it back when it sleeps,
when it waits for a result of the loop, and when it ends. Running the functions on the loop's own thread instead
would be wrong: two that sleep for 5 s would take 10 s.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import linecache
import re
import sys
import threading
import traceback
import warnings
from contextvars import Context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim.runtime.virtual.core.clock import delay_to_ns
from broker_sim.runtime.virtual.core.errors import EscapeError
from broker_sim.runtime.virtual.core.locations import program_location
from broker_sim.runtime.virtual.core.processes import PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.runtime.virtual.core.core import Core
    from broker_sim.runtime.virtual.core.processes import Process

PATIENCE_S: Final = 10.0
"""Maximum real time for which a worker may keep the baton."""
LOOK_S: Final = 0.2
"""Real time between two checks of a worker with the baton."""
LOOKS: Final = 5
"""Number of checks in the same wait for a lock after which a worker counts as stuck."""
TAKES_LOCK: Final = re.compile(r"\bwith\b|\.acquire\(")
SWITCHES: Final = re.compile(r"^voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE)


class _WorkerOfThread(threading.local):
    worker: Worker | None = None


_worker_of_thread = _WorkerOfThread()
"""`worker` is this thread's worker, None in all other threads."""


def current_worker() -> Worker | None:
    """Return this thread's worker of a virtual loop; None in all other threads."""
    return _worker_of_thread.worker


class _AbandonedError(BaseException):
    """Ends a worker because its loop is closed."""


class Worker:
    """A thread that takes turns with the loop."""

    def __init__(self, core: Core, workers: Workers, thread: threading.Thread) -> None:
        self.loop = core.loop
        self.thread = thread
        self.ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        """Done once the thread has run."""
        self.on_stuck: Callable[[], object] = lambda: None
        """Called when the thread blocks in real time, so that nothing waits for its end."""
        self._core = core
        self._workers = workers
        self._my_turn, self._loops_turn = threading.Lock(), threading.Lock()
        self._my_turn.acquire()
        self._loops_turn.acquire()
        self._abandoned = False
        self._context = Context()
        """Context of its callbacks: they belong to the process that started the thread."""
        self._context.run(PROCESS.set, PROCESS.get())

    # -- on the loop's thread ---------------------------------------------------------------------

    def resume(self) -> None:
        """Let the thread run until it gives the baton back; called by the loop."""
        if self._abandoned:
            return
        self._my_turn.release()
        if self._gives_the_baton_back():
            return
        self._abandoned = True
        self.on_stuck()
        frame = sys._current_frames().get(self.thread.ident or 0)
        place = "".join(traceback.format_stack(frame, limit=3)) if frame is not None else "  ?\n"
        raise EscapeError(
            f"{self.thread.name} blocks in real time. In virtual time a thread may wait by time.sleep, for results of "
            "the loop, and by the classes of threading and queue, but not for a lock that another thread holds: "
            f"release locks before you wait. The thread is at\n{place.rstrip()}"
        )

    def _gives_the_baton_back(self) -> bool:
        """Wait for the baton; return whether the worker gave it back in time.

        A worker that waits for a lock would wait for ever: the lock's holder is waiting itself.
        """
        last, looks = None, 0
        for _ in range(round(PATIENCE_S / LOOK_S)):
            if self._loops_turn.acquire(timeout=LOOK_S):
                return True
            wait = _lock_wait(self.thread)
            looks = looks + 1 if wait is not None and wait == last else 1
            last = wait
            if looks == LOOKS:
                break
        return False

    def abandon(self) -> None:
        """End the waiting thread because the loop is being closed."""
        is_stuck, self._abandoned = self._abandoned, True
        if self.thread.is_alive() and not is_stuck:
            self._my_turn.release()
            self.thread.join(PATIENCE_S)

    # -- on the worker's thread -------------------------------------------------------------------

    def run(self, function: Callable[[], object]) -> None:
        """Run the thread's function once it is its turn."""
        _worker_of_thread.worker = self
        PROCESS.set(self._context[PROCESS])
        self._my_turn.acquire()
        if self._abandoned:
            return
        try:
            function()
        except _AbandonedError:
            return
        except BaseException as error:  # noqa: BLE001 - it fails the run
            if not self._abandoned:
                message = f"thread {self.thread.name} failed"
                context = {"message": message, "exception": error}
                self.loop.call_soon(self.loop.call_exception_handler, context)
        if not self._abandoned:
            self.loop.call_soon(self._end)
            self._loops_turn.release()

    def _end(self) -> None:
        self._workers.remove(self)
        self.ended.set_result(None)

    def _park(self) -> None:
        """Give the baton back until `resume`."""
        self._end_if_abandoned()
        self._loops_turn.release()
        self._my_turn.acquire()
        self._end_if_abandoned()

    def _end_if_abandoned(self) -> None:
        if self._abandoned:
            raise _AbandonedError

    def sleep(self, seconds: float) -> None:
        """Wait in virtual time, as `time.sleep` in this thread."""
        self._end_if_abandoned()
        due_ns = self._core.clock.now_ns + delay_to_ns(seconds)
        self._core.call_at_ns(due_ns, self.resume, context=self._context)
        self._park()

    def wait_for(self, future: concurrent.futures.Future[Any], timeout_s: float | None = None) -> None:
        """Wait until the future is done, for at most `timeout_s` of virtual time."""
        if future.done():
            return
        self._end_if_abandoned()
        waiting = True

        def go_on(*_: object) -> None:
            nonlocal waiting
            if waiting:
                waiting = False
                self.loop.call_soon_threadsafe(self.resume, context=self._context)

        timer = None if timeout_s is None else self.loop.call_later(timeout_s, go_on)
        future.add_done_callback(go_on)
        self._park()
        if timer is not None:
            timer.cancel()


class Workers:
    """The workers of one loop."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._loop = core.loop
        self._live: dict[Worker, None] = {}
        self._tasks: dict[asyncio.Future[Any], Process | None] = {}

    def submit(self, function: Callable[[], Any], executor: concurrent.futures.Executor | None) -> asyncio.Future[Any]:
        """Run the function in a new worker; the number of workers is not limited."""
        processes = sys.modules.get("concurrent.futures.process")  # slow to import, rarely needed
        if processes is not None and isinstance(executor, processes.ProcessPoolExecutor):
            self._core.refuse("run_in_executor: a process runs in real time; use a thread")
        future = self._loop.create_future()
        ended = self._loop.create_future()
        self._tasks[ended] = PROCESS.get()
        ended.add_done_callback(self._tasks.pop)
        self._loop.call_soon(self._begin, function, future, ended)
        return future

    def _begin(self, function: Callable[[], Any], future: asyncio.Future[Any], ended: asyncio.Future[None]) -> None:
        if future.cancelled():
            ended.set_result(None)
            return

        def call() -> None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = function()
            except _AbandonedError:
                raise
            except BaseException as raised:  # noqa: BLE001 - the future passes it on, as with executors
                error = raised
            self._loop.call_soon(settle, result, error)

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        def settle(result: Any, error: BaseException | None) -> None:
            end()
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        name = f"virtual-worker-{self._core.next_number()}"
        thread = threading.Thread(name=name, daemon=True)
        worker = self.adopt(thread, call)
        worker.on_stuck = end
        thread.start()
        worker.resume()

    def adopt(self, thread: threading.Thread, function: Callable[[], object]) -> Worker:
        """Turn a thread that is about to be started into a worker that runs the function."""
        worker = Worker(self._core, self, thread)
        self._live[worker] = None
        thread.run = lambda: worker.run(function)  # type: ignore[method-assign]
        return worker

    def remove(self, worker: Worker) -> None:
        """Forget a worker that has ended."""
        self._live.pop(worker, None)

    def describe(self) -> str:
        """Return one line for each running thread: its name, and where it is."""
        frames = sys._current_frames()
        return "".join(
            f"\n  thread {worker.thread.name} waits at {program_location(frame)}"
            for worker in self._live
            if (frame := frames.get(worker.thread.ident or 0)) is not None
        )

    async def join(self, timeout_s: float | None) -> None:
        """Wait until all submitted functions have ended, except those of killed processes.

        Warns if they have not ended within the timeout.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while tasks := [task for task, process in self._tasks.items() if not (process and process.is_dead)]:
                    await asyncio.wait(tasks)
        except TimeoutError:
            message = f"threads of the virtual loop did not end within {timeout_s} s"
            warnings.warn(message, RuntimeWarning, stacklevel=4)

    def abandon(self) -> None:
        """End all remaining workers."""
        for worker in list(self._live):
            worker.abandon()
        self._live.clear()


def _lock_wait(thread: threading.Thread) -> tuple[object, ...] | None:
    """Return a value that stays equal while the thread stays in the same wait for a lock.

    It is made of the thread's line and of data from the operating system. None if the thread does not wait for a lock,
    and on other systems than Linux. One thread runs at a time, so no thread releases the lock that this one waits for.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return None
    if not TAKES_LOCK.search(linecache.getline(frame.f_code.co_filename, frame.f_lineno)):
        return None
    of_thread = Path(f"/proc/self/task/{thread.native_id}")
    try:
        waits_in, status = (of_thread / "wchan").read_text(), (of_thread / "status").read_text()
    except OSError:
        return None
    switches = SWITCHES.search(status)
    if "futex" not in waits_in or switches is None:
        return None
    return (frame.f_code, frame.f_lasti, switches[1])

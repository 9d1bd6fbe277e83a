"""Threads in virtual time: `asyncio.to_thread` and executors, one thread at a time.

A worker runs only while the loop's thread waits for it: they pass a baton. A worker gives it back
when it sleeps, when it waits for a result of the loop, and when it ends. To run the functions on
the loop's own thread instead would be wrong: two that sleep for 5 s would take 10 s.
"""

from __future__ import annotations

import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, Final

from broker_sim.runtime.virtual.clock import delay_to_ns
from broker_sim.runtime.virtual.current import worker_of_thread
from broker_sim.runtime.virtual.errors import EscapeError

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures
    from collections.abc import Callable

    from broker_sim.runtime.virtual.loop import VirtualEventLoop

__all__ = ["Worker", "Workers"]

PATIENCE_S: Final = 10.0
"""How long in real time a worker may keep the baton."""


class _AbandonedError(BaseException):
    """Ends a worker whose loop is closed."""


class Worker:
    """One function in a thread of its own."""

    def __init__(
        self,
        loop: VirtualEventLoop,
        workers: Workers,
        function: Callable[[], Any],
        future: asyncio.Future[Any],
    ) -> None:
        self.loop = loop
        self._workers = workers
        self._function = function
        self._future = future
        self._my_turn, self._loops_turn = threading.Lock(), threading.Lock()
        self._my_turn.acquire()
        self._loops_turn.acquire()
        self._abandoned = False
        self._thread = threading.Thread(
            target=self._run, name=f"virtual-worker-{loop.next_number()}", daemon=True
        )

    # -- on the loop's thread ---------------------------------------------------------------------

    def start(self) -> None:
        """Run the function until it waits for something or ends; a callback of the loop."""
        if self._future.cancelled():
            self._workers.remove(self)
        else:
            self._thread.start()
            self._wait_for_baton()

    def resume(self) -> None:
        """Let the thread go on; a callback of the loop."""
        self._my_turn.release()
        self._wait_for_baton()

    def _wait_for_baton(self) -> None:
        if self._loops_turn.acquire(timeout=PATIENCE_S):
            return
        self._abandoned = True
        frame = sys._current_frames().get(self._thread.ident or 0)
        place = "".join(traceback.format_stack(frame, limit=3)) if frame is not None else "  ?\n"
        raise EscapeError(
            f"{self._thread.name} blocks for {PATIENCE_S} s of real time; in virtual time a thread "
            "may wait with time.sleep and with the results of run_coroutine_threadsafe. It is at\n"
            f"{place.rstrip()}"
        )

    def _settle(self, result: Any, error: BaseException | None) -> None:
        self._workers.remove(self)
        if self._future.done():
            return
        if error is None:
            self._future.set_result(result)
        else:
            self._future.set_exception(error)

    def abandon(self) -> None:
        """End the thread where it waits; the loop is being closed."""
        is_stuck, self._abandoned = self._abandoned, True
        if self._thread.is_alive() and not is_stuck:
            self._my_turn.release()
            self._thread.join(PATIENCE_S)

    # -- on the worker's thread -------------------------------------------------------------------

    def _run(self) -> None:
        worker_of_thread.worker = self
        result: Any = None
        error: BaseException | None = None
        try:
            result = self._function()
        except _AbandonedError:
            return
        except BaseException as raised:  # noqa: BLE001 - the future hands it on, as executors do
            error = raised
        if not self._abandoned:
            self.loop.call_soon(self._settle, result, error)
            self._loops_turn.release()

    def _park(self) -> None:
        """Give the baton back until `resume`."""
        if self._abandoned:
            raise _AbandonedError
        self._loops_turn.release()
        self._my_turn.acquire()
        if self._abandoned:
            raise _AbandonedError

    def sleep(self, seconds: float) -> None:
        """Wait in virtual time: `time.sleep` of this thread."""
        loop = self.loop
        loop.call_at_ns(loop.clock.now_ns + delay_to_ns(seconds), self.resume)
        self._park()

    def wait_for(
        self, future: concurrent.futures.Future[Any], timeout_s: float | None = None
    ) -> None:
        """Wait until the future is done, at the longest for `timeout_s` of virtual time."""
        if future.done():
            return
        waiting = True

        def go_on(*_: object) -> None:
            nonlocal waiting
            if waiting:
                waiting = False
                self.loop.call_soon(self.resume)

        timer = None if timeout_s is None else self.loop.call_later(timeout_s, go_on)
        future.add_done_callback(go_on)
        self._park()
        if timer is not None:
            timer.cancel()


class Workers:
    """The workers of one loop."""

    def __init__(self, loop: VirtualEventLoop) -> None:
        self._loop = loop
        self._live: dict[Worker, None] = {}
        self._idle: asyncio.Future[None] | None = None

    def submit(
        self, function: Callable[[], Any], executor: concurrent.futures.Executor | None
    ) -> asyncio.Future[Any]:
        """Run the function in a new worker; there are as many as are asked for."""
        processes = sys.modules.get("concurrent.futures.process")  # slow to import, seldom needed
        if processes is not None and isinstance(executor, processes.ProcessPoolExecutor):
            raise EscapeError("run_in_executor: a process runs in real time; use a thread")
        future = self._loop.create_future()
        worker = Worker(self._loop, self, function, future)
        self._live[worker] = None
        self._loop.call_soon(worker.start)
        return future

    def remove(self, worker: Worker) -> None:
        """Forget a worker that has ended."""
        self._live.pop(worker, None)
        if not self._live and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    async def join(self) -> None:
        """Wait until all have ended."""
        while self._live:
            self._idle = self._loop.create_future()
            await self._idle

    def abandon(self) -> None:
        """End those that never will by themselves."""
        for worker in list(self._live):
            worker.abandon()
        self._live.clear()

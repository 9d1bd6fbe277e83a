"""Blocking waits in virtual time: for threads, conditions, and results of executors.

Events, semaphores, barriers, timers and queues are built on conditions, so they need no replacement. In a worker
thread a wait takes virtual time; on the loop's own thread it would last for ever.
"""

from __future__ import annotations

import concurrent.futures
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.virtual.core.locations import is_ours
from broker_sim.runtime.virtual.loop import current_loop
from broker_sim.runtime.virtual.threads import current_worker

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker_sim.runtime.virtual.threads import Worker

_WORKER = "_virtual_worker"


class _Starting(threading.local):
    """Whether this thread is starting another one, for which it waits in real time."""

    now = False


_starting = _Starting()


def _refuse_on_the_loop(what: str) -> None:
    """Refuse a wait that would block a virtual loop's thread, and with it everything that could end the wait."""
    loop = current_loop()
    if loop is not None and current_worker() is None and not _starting.now:
        loop.refuse(f"{what} blocks the whole loop; await it, or do it in asyncio.to_thread")


# -- threads --------------------------------------------------------------------------------------

_real_start = threading.Thread.start
_real_join = threading.Thread.join


def _start(self: threading.Thread) -> None:
    loop = current_loop()
    worker = None
    # Our own trace writer runs in real time: it writes a file.
    if loop is not None and not is_ours(sys._getframe(1).f_code.co_filename):
        worker = loop.workers.adopt(self, self.run)
        setattr(self, _WORKER, worker)
    _starting.now = True
    try:
        _real_start(self)
    finally:
        _starting.now = False
    if worker is not None:
        worker.loop.call_soon(worker.resume)


def _join(self: threading.Thread, timeout: float | None = None) -> None:
    worker: Worker | None = getattr(self, _WORKER, None)
    if worker is not None and not worker.ended.done() and current_loop() is worker.loop:
        _wait_for(worker.ended, timeout, "Thread.join")
        if not worker.ended.done():
            return
    _real_join(self, timeout)


THREAD_REPLACEMENTS: dict[str, Any] = {"start": _start, "join": _join}

# -- results --------------------------------------------------------------------------------------

_real_result = concurrent.futures.Future.result
_real_exception = concurrent.futures.Future.exception


def _wait_for(future: concurrent.futures.Future[Any], timeout: float | None, what: str) -> float | None:
    """Wait in virtual time if this thread is a worker; return the timeout for the real wait that follows."""
    worker = current_worker()
    if worker is not None:
        worker.wait_for(future, timeout)
        return 0
    if not future.done() and timeout != 0:
        _refuse_on_the_loop(what)
    return timeout


def _result(self: concurrent.futures.Future[Any], timeout: float | None = None) -> Any:
    return _real_result(self, _wait_for(self, timeout, "Future.result"))


def _exception(self: concurrent.futures.Future[Any], timeout: float | None = None) -> BaseException | None:
    return _real_exception(self, _wait_for(self, timeout, "Future.exception"))


FUTURE_REPLACEMENTS: dict[str, Any] = {"result": _result, "exception": _exception}

_real_submit = concurrent.futures.ThreadPoolExecutor.submit


def _submit(
    self: concurrent.futures.ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> concurrent.futures.Future[Any]:
    loop = current_loop()
    if loop is None or self._shutdown:  # the real method raises the error for a shutdown
        return _real_submit(self, fn, *args, **kwargs)
    inner = loop.workers.submit(partial(fn, *args, **kwargs), self)
    outer: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def settle(inner: asyncio.Future[Any]) -> None:
        if not inner.cancelled():
            error = inner.exception()
            if not outer.set_running_or_notify_cancel():
                return
            if error is None:
                outer.set_result(inner.result())
            else:
                outer.set_exception(error)

    inner.add_done_callback(settle)
    outer.add_done_callback(lambda outer: inner.cancel() if outer.cancelled() else None)
    return outer


EXECUTOR_REPLACEMENTS: dict[str, Any] = {"submit": _submit}

# -- conditions -----------------------------------------------------------------------------------

_real_wait = threading.Condition.wait


class _Waiter:
    """Takes the place of the lock that a condition releases to notify a thread."""

    def __init__(self) -> None:
        self.notified: concurrent.futures.Future[None] = concurrent.futures.Future()

    def release(self) -> None:
        """Let the thread go on."""
        self.notified.set_result(None)


def _wait(self: Any, timeout: float | None = None) -> bool:
    worker = current_worker()
    if worker is None or _starting.now:
        _refuse_on_the_loop("waiting for another thread")
        return _real_wait(self, timeout)
    if not self._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    waiter = _Waiter()
    self._waiters.append(waiter)
    saved = self._release_save()
    try:
        worker.wait_for(waiter.notified, timeout)
    finally:
        self._acquire_restore(saved)
        if not waiter.notified.done() and waiter in self._waiters:
            self._waiters.remove(waiter)
    return waiter.notified.done()


CONDITION_REPLACEMENTS: dict[str, Any] = {"wait": _wait}

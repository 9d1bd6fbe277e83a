"""Where expired tasks run: on a thread of their own, or at once in the caller's thread.

Mirrors the fixed pool of one thread inside org.apache.kafka.server.util.timer.SystemTimer.
Deliberate difference: the executor is injected, so an event loop or a simulator can be one.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

_LOGGER = logging.getLogger(__name__)

EXECUTOR_THREAD_PREFIX = "executor-"


class Executor(Protocol):
    """The executor of a timer's expired tasks; concurrent.futures' executors fit as they are."""

    def submit(self, fn: Callable[[], object], /) -> object:
        """Run `fn` once, now or soon, on any thread; the return value is ignored."""


class InlineExecutor:
    """Runs each task at once in the thread that submits it: for virtual time and tests.

    An exception passes through to the caller that added the task or advanced the clock.
    """

    __slots__ = ()

    def submit(self, fn: Callable[[], object], /) -> None:
        """Run `fn` before returning."""
        fn()


class SingleThreadExecutor:
    """Runs tasks one after the other on a daemon thread that starts with the first of them.

    An exception in a task is logged and does not end the thread. Any thread may submit.
    """

    __slots__ = ("_lock", "_name", "_shut_down", "_tasks", "_worker")

    def __init__(self, name: str) -> None:
        self._name = EXECUTOR_THREAD_PREFIX + name
        self._tasks: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._shut_down = False

    def submit(self, fn: Callable[[], object], /) -> None:
        """Queue `fn` behind earlier tasks; RuntimeError after shutdown."""
        with self._lock:
            if self._shut_down:
                raise RuntimeError(f"{self._name} is shut down")
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._worker.start()
            self._tasks.put(fn)

    def shutdown(self, timeout_ms: int = 5_000) -> None:
        """Run the queued tasks, then end the thread; wait at most `timeout_ms` for that. Idempotent."""
        with self._lock:
            self._shut_down = True
            thread = self._worker
        if thread is None:
            return
        self._tasks.put(None)
        if thread is not threading.current_thread():
            thread.join(timeout_ms / 1_000)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception:
                _LOGGER.exception("%s: an expired task failed", self._name)

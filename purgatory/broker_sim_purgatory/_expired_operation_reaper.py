"""The thread that expires operations and purges those that are completed.

Mirrors DelayedOperationPurgatory.ExpiredOperationReaper. Deliberate difference: it is a daemon
thread, so a purgatory that nobody shuts down does not keep a process alive.
"""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

_LOGGER = logging.getLogger(__name__)

WORK_TIMEOUT_MS = 200
"""Longest wait of one round, in ms; a purge that is due comes at most that late."""


class Reaper(Protocol):
    """Expires the operations of a purgatory: this thread, an event loop, or a simulator."""

    def shutdown(self) -> None:
        """Expire nothing from now on. Idempotent."""


class ExpiredOperationReaper:
    """Calls `work(200)` over and over on a thread named `name` until it is shut down.

    An exception is logged and does not end the thread.
    """

    __slots__ = ("_shut_down", "_wakeup", "_work", "_worker")

    def __init__(self, name: str, work: Callable[[int], object], wakeup: Callable[[], None]) -> None:
        self._work = work
        self._wakeup = wakeup
        self._shut_down = False
        self._worker = threading.Thread(target=self._loop, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def shutdown(self) -> None:
        """End the thread at once, without waiting for its timeout; returns when it has ended.

        Called by the thread itself it returns at once, and the thread ends after this round.
        """
        self._shut_down = True
        self._wakeup()
        if self._worker is not threading.current_thread():
            self._worker.join()

    def _loop(self) -> None:
        while not self._shut_down:
            try:
                self._work(WORK_TIMEOUT_MS)
            except Exception:
                _LOGGER.exception("%s: expiring operations failed", self._worker.name)

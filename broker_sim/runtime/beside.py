"""Work that takes long and touches nothing of the loop's: it is done beside the loop.

Work that computes is done one piece at a time: more than one thread would take the interpreter from the loop
for longer. A scheduler has two such queues, so that short work does not wait for long work. Work that waits for
others is begun at once. The end of the program waits for none of it.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class BesideLoop:
    """A queue of work, and the thread that does it. Thread rule: the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], object]]] = deque()
        self._is_busy = False

    def run(self, work: Callable[[], Any], on_done: Callable[[Any], object]) -> None:
        """Run `work()` in a thread, then `on_done(result)` on the loop.

        The work must not raise; if it does, the loop's handler of exceptions is told.
        """
        self._waiting.append((work, on_done))
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        self._is_busy = bool(self._waiting)
        if not self._waiting:
            return
        work, on_done = self._waiting.popleft()

        def outcome() -> tuple[Any, Exception | None]:
            try:
                return work(), None
            except Exception as error:  # noqa: BLE001 - the queue goes on
                return None, error

        def done(outcome: tuple[Any, Exception | None]) -> None:
            self._next()
            result, error = outcome
            if error is None:
                on_done(result)
            else:
                message = "work beside the loop has failed"
                self._loop.call_exception_handler({"message": message, "exception": error})

        wait_beside(self._loop, outcome, done)


def wait_beside(loop: asyncio.AbstractEventLoop, work: Callable[[], Any], on_done: Callable[[Any], object]) -> None:
    """Run `work()` in a new thread, then `on_done(result)` on the loop if it is still there. The work must not raise."""

    def run() -> None:
        result = work()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(on_done, result)

    # Not a thread of the loop's executor: the end of the loop waits for those.
    threading.Thread(target=run, name="broker-sim-waits", daemon=True).start()

"""Work that takes long and touches nothing of the loop's: it is done beside the loop, one piece at a time.

More than one thread would take the interpreter from the loop for longer.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["BesideLoop"]


class BesideLoop:
    """A queue of work, and the thread of the loop's executor that does it. Thread rule: the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], object]]] = deque()
        self._is_busy = False

    def run(self, work: Callable[[], Any], on_done: Callable[[Any], object]) -> None:
        """Run `work()` in a thread, then `on_done(result)` on the loop. The work must not raise."""
        self._waiting.append((work, on_done))
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        self._is_busy = bool(self._waiting)
        if not self._waiting:
            return
        work, on_done = self._waiting.popleft()

        def done(future: asyncio.Future[Any]) -> None:
            self._next()
            if not future.cancelled():
                on_done(future.result())

        self._loop.run_in_executor(None, work).add_done_callback(done)

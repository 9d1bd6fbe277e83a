"""The shutdown of a serving command: requested by a signal, or by the end of its stdin."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.system import Thread

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

STDIN = 0
STDIN_BYTES = 4096


class Shutdown:
    """The shutdown of a command, requested by signals or other threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.requested = asyncio.Event()
        self.halt: Callable[[], object] = lambda: None
        """Called in the signal handler, because with many partitions the loop may have seconds of work queued."""
        self._loop = loop

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Request the shutdown on SIGINT, SIGTERM and, on Windows, SIGBREAK, in the `with` block."""
        names = ("SIGINT", "SIGTERM", "SIGBREAK")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        # Not `add_signal_handler`, whose handlers wait for a turn of the loop.
        before = {number: signal.signal(number, self._on_signal) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)

    def _on_signal(self, *_: object) -> None:
        self.halt()
        self.request()

    def request(self) -> None:
        """Request the shutdown. Thread rule: any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.requested.set)

    def on_end_of_stdin(self) -> None:
        """Request the shutdown at the end of stdin, read in a thread because event loops refuse regular files."""

        def read_to_the_end() -> None:
            with contextlib.suppress(OSError):
                while os.read(STDIN, STDIN_BYTES):
                    pass
            self.request()

        Thread(target=read_to_the_end, name="stdin", daemon=True).start()

    async def run(self, work: Coroutine[Any, Any, object]) -> bool:
        """Await the work, or cancel it if the shutdown is requested first; return whether it was completed."""
        task = asyncio.ensure_future(work)
        requested = asyncio.ensure_future(self.requested.wait())
        try:
            await asyncio.wait({task, requested}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            requested.cancel()
            was_done = task.done()
            if not was_done:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if was_done:
            await task
        return was_done

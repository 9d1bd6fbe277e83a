"""Ends a serving command at a signal, or at the end of its stdin."""

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


class Ending:
    """Signals the end of a command; triggered by signals or other threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.has_come = asyncio.Event()
        self.halt: Callable[[], object] = lambda: None
        """Called in the signal handler, because with many partitions the loop may have seconds of work queued."""
        self._loop = loop

    @contextlib.contextmanager
    def at_signals(self) -> Iterator[None]:
        """End on SIGINT, SIGTERM and, on Windows, SIGBREAK."""
        names = ("SIGINT", "SIGTERM", "SIGBREAK")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        # Not `add_signal_handler`, whose handlers wait for a turn of the loop.
        before = {number: signal.signal(number, self._signalled) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)

    def _signalled(self, *_: object) -> None:
        self.halt()
        self.come()

    def come(self) -> None:
        """End now. Thread rule: any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.has_come.set)

    def at_end_of_stdin(self) -> None:
        """End at the end of stdin, read in a thread because event loops refuse regular files."""

        def read_to_the_end() -> None:
            with contextlib.suppress(OSError):
                while os.read(STDIN, STDIN_BYTES):
                    pass
            self.come()

        Thread(target=read_to_the_end, name="stdin", daemon=True).start()

    async def or_done(self, work: Coroutine[Any, Any, object]) -> bool:
        """Await the work, or cancel it if the end comes first; return whether it was completed."""
        working = asyncio.ensure_future(work)
        coming = asyncio.ensure_future(self.has_come.wait())
        try:
            await asyncio.wait({working, coming}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            coming.cancel()
            was_done = working.done()
            if not was_done:
                working.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await working
        if was_done:
            await working
        return was_done

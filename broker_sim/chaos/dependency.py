"""A simulated dependency of a program: an HTTP server on the virtual network that faults make fail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker_sim.chaos.worker import Worker

OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
END_OF_HEAD: Final = b"\r\n\r\n"


class Dependency:
    """The dependency of one start of a worker; it ends with the worker's process."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def open(self) -> str:
        """Start serving; return the URL."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._worker.on_death(server.close)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(END_OF_HEAD)
            if not self._worker.is_failing:
                writer.write(OK)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, asyncio.CancelledError):
            pass  # the program has ended
        finally:
            writer.close()

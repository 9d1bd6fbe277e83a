"""The control port: bound at once, served by aiohttp from the first request on.

aiohttp takes longer to import than a cluster takes to start, so it is imported only for the first request, which
waits in the backlog meanwhile. If aiohttp cannot be imported or started, the port is closed, so that no client
waits for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from broker_sim.control.guard import Guard
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.sockets import address_text, bare_host, bind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from broker_sim.runtime.system import StandardSocket


LISTEN_BACKLOG = 128
APP_MODULE = "broker_sim.control.app"
LOOPBACK_OF_ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound here
"""The loopback address for each address that stands for all."""

log = get_logger(__name__)


class ControlledCluster(Protocol):
    """A cluster with verbs; see `verb`. Its status has a row for each broker."""

    def status(self) -> Any:
        """Return the cluster's status."""

    def picture(self, search: str = "", level: int = 0, bucket: int = 0) -> Any:
        """Return the picture that the page draws."""


class ControlServer:
    """Serves the verbs of one cluster over HTTP on the cluster's event loop.

    It answers requests for loopback, for `host` and for `names`; with a `token` only requests that have it. With
    `is_read_only` it refuses changes. See `Guard`. Port 0 is any free port. Raises OSError with advice if the port is
    in use.
    """

    def __init__(
        self,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        names: Iterable[str] = (),
        token: str | None = None,
        is_read_only: bool = False,
    ) -> None:
        host = bare_host(host)
        self._guard = Guard(host, names, token, is_read_only=is_read_only)
        self._socket = bind(asyncio.get_running_loop(), host, port, argument="control", option="--control-port")
        self._socket.listen(LISTEN_BACKLOG)
        self._socket.setblocking(False)
        # Bound to all addresses, it is told by the one that programs of this machine always reach.
        reached = LOOPBACK_OF_ALL.get(host, host)
        self.url = f"http://{address_text(reached, self._socket.getsockname()[1])}"
        self._task: asyncio.Task[None] | None = None
        self._stop_serving: Callable[[], Awaitable[None]] | None = None

    def serve(self, cluster: ControlledCluster) -> None:
        """Answer requests from now on; returns at once."""
        self._task = asyncio.create_task(self._serve(cluster))

    async def _serve(self, cluster: ControlledCluster) -> None:
        await _until_readable(self._socket)
        try:
            # In a thread, so that the brokers keep running.
            app = await asyncio.to_thread(import_module, APP_MODULE)
            self._stop_serving = await app.serve(cluster, self._socket, self._guard)
        except Exception as error:  # noqa: BLE001 - for any reason, clients must not wait
            log.error("control_port_failed", url=self.url, reason=repr(error))  # noqa: TRY400 - the reason is enough
            self._socket.close()

    async def close(self) -> None:
        """Stop serving and close the port."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._stop_serving is not None:
            await self._stop_serving()
        self._socket.close()


async def _until_readable(listening: StandardSocket) -> None:
    """Wait for the first client; return at once if the event loop does not support that (Windows)."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(listening, readable.set)
    except NotImplementedError:
        return
    try:
        await readable.wait()
    finally:
        loop.remove_reader(listening)

"""One broker's listening socket and its connections; mirrors ``kafka.network.SocketServer``."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from broker_sim.network.connection import Connection, RequestSink
from broker_sim.network.open_connections import OpenConnections

if TYPE_CHECKING:
    from broker_sim.config import BrokerConfig
    from broker_sim.runtime.process import Process

__all__ = ["SocketServer"]

LISTEN_BACKLOG = 512


class SocketServer:
    """Accepts clients for one broker; a restarted broker gets a new server on the same port."""

    def __init__(self, host: str, port: int) -> None:
        """Bind at once, so that a port in use is told before anything has started.

        ``port`` 0 takes any free one. Raises OSError with an advice if that fails.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise OSError(
                error.errno,
                f"cannot listen on {host}:{port} ({error.strerror}); "
                "choose another --port, or 0 for any free one",
            ) from error
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._connections: OpenConnections | None = None
        self._holds_clients = False

    async def start(self, process: Process, sink: RequestSink, config: BrokerConfig) -> None:
        """Accept clients and hand their requests to ``sink`` in the broker's process."""
        loop = asyncio.get_running_loop()
        connections = OpenConnections(process, config.connections_max_idle_ms)
        if self._holds_clients:
            connections.hold()
        self._connections = connections
        self._server = await loop.create_server(
            lambda: Connection(
                process,
                sink,
                config.socket_request_max_bytes,
                connections.add,
                connections.discard,
            ),
            sock=self._socket,
            backlog=LISTEN_BACKLOG,
        )

    def hold_clients(self) -> None:
        """Cut the network to the clients: connections are made, but nothing passes on them.

        Before `start` too: those that come then are held.
        """
        self._holds_clients = True
        if self._connections is not None:
            self._connections.hold()

    def release_clients(self) -> None:
        """Mend it; what either side has sent meanwhile arrives now."""
        self._holds_clients = False
        if self._connections is not None:
            self._connections.release()

    def close(self) -> None:
        """Stop listening and break all connections off."""
        if self._server is None:
            self._socket.close()
        else:
            # The socket is the server's now: closed here as well, its number could be another's.
            self._server.close()
            self._server = None
        if self._connections is not None:
            self._connections.abort()

"""One broker's port and its connections; mirrors `kafka.network.SocketServer`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker_sim.network.connection import Connection, RequestSink
from broker_sim.network.open_connections import OpenConnections
from broker_sim.runtime.acceptor import accept_connections
from broker_sim.runtime.sockets import bind

if TYPE_CHECKING:
    from broker_sim.config import BrokerConfig
    from broker_sim.log import MemoryAccount
    from broker_sim.runtime.acceptor import Accepting
    from broker_sim.runtime.process import Process

__all__ = ["SocketServer"]


class SocketServer:
    """Accepts clients for one broker; a restarted broker gets a new server on the same port."""

    def __init__(self, host: str, port: int) -> None:
        """Bind at once on the running loop, so that a port in use is told before anything starts.

        `port` 0 takes any free one. Raises OSError with advice if that fails.
        """
        self._socket = bind(asyncio.get_running_loop(), host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._server: Accepting | None = None
        self._connections: OpenConnections | None = None
        self._holds_clients = False

    async def start(
        self,
        process: Process,
        sink: RequestSink,
        config: BrokerConfig,
        memory: MemoryAccount | None = None,
    ) -> None:
        """Accept clients and hand their requests to `sink` in the broker's process.

        What large requests take is counted in `memory`, if it is given.
        As many as `socket.listen.backlog.size` may wait to be accepted, and, on Linux, one more.
        """
        connections = OpenConnections(
            process,
            config.connections_max_idle_ms,
            max_connections=config.max_connections,
            max_connections_per_ip=config.max_connections_per_ip,
        )
        if self._holds_clients:
            connections.hold()
        self._connections = connections
        self._server = await accept_connections(
            asyncio.get_running_loop(),
            self._socket,
            lambda: Connection(
                process,
                sink,
                config.socket_request_max_bytes,
                connections.add,
                connections.discard,
                memory,
            ),
            config.socket_listen_backlog_size,
        )

    def hold_clients(self) -> None:
        """Cut the network to the clients: connections are made, but nothing passes on them.

        Called before `start`, it holds the connections that are made afterwards.
        """
        self._holds_clients = True
        if self._connections is not None:
            self._connections.hold()

    def release_clients(self) -> None:
        """Mend the network: what either side has sent meanwhile arrives now."""
        self._holds_clients = False
        if self._connections is not None:
            self._connections.release()

    def close(self) -> None:
        """Stop listening and break all connections off."""
        if self._server is None:
            self._socket.close()
        else:
            # The server owns the socket. Closed here too, its number could be another socket's.
            self._server.close()
            self._server = None
        if self._connections is not None:
            self._connections.abort()

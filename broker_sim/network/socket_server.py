"""One broker's listeners and their connections; mirrors `kafka.network.SocketServer`.

A listener can move to another port while the broker runs, unlike in Kafka: clients that know only the former
port are cut off for good. If clients were connected, the former port stays bound, so that the operating system
does not give it to another cluster, to which those clients would then connect.

Deliberate differences: a TLS connection counts towards the connection limits after its handshake, in Kafka
before it. Brokers do not connect to the inter-broker listener here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from broker_sim.network.connection import Connection, RequestSink
from broker_sim.network.login import ListenerSecurity, Login
from broker_sim.network.login_turns import LoginTurns
from broker_sim.network.open_connections import OpenConnections
from broker_sim.quota import ConnectionQuotas
from broker_sim.runtime.acceptor import accept_connections
from broker_sim.runtime.read_turns import ReadTurns, read_turns
from broker_sim.runtime.sockets import bind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from broker_sim.config import BrokerConfig, Endpoint
    from broker_sim.log import MemoryAccount
    from broker_sim.runtime.acceptor import Accepting
    from broker_sim.runtime.process import Process
    from broker_sim.runtime.system import StandardSocket
    from broker_sim.security import KafkaPrincipal

OPEN: Final = ListenerSecurity()
NO_SECURITY: Final[Mapping[str, ListenerSecurity]] = MappingProxyType({})
NO_OTHER_SINKS: Final[Mapping[str, RequestSink]] = MappingProxyType({})
FORMER_PORTS: Final = 16
"""Maximum number of former ports that stay bound; each uses a file descriptor."""


class SocketServer:
    """Accepts clients for one broker; a restarted broker gets a new server on the same ports."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        """Bind at once on the running loop, so that a port in use is reported before anything starts.

        Port 0 stands for any free port. Raises OSError with advice if binding fails.
        """
        loop = asyncio.get_running_loop()
        self._sockets: list[StandardSocket] = []
        self._servers: dict[str, Accepting] = {}
        """Accepting sockets by listener."""
        self._secured: frozenset[str] = frozenset()
        """The listeners with TLS."""
        self.endpoints: list[Endpoint] = []
        """The listeners, with their actual ports."""
        self._connections: OpenConnections | None = None
        self._read_turns: ReadTurns | None = None
        self._held: set[str] = set()
        """The listeners whose clients are held."""
        self._accept: Callable[[Endpoint, StandardSocket], Awaitable[Accepting]] | None = None
        """Accepts clients of an endpoint on a bound socket; None before `start`."""
        self._former: deque[StandardSocket] = deque()
        """Sockets of former ports: bound but not listening, so that connections are refused."""
        try:
            for endpoint in endpoints:
                bound = bind(loop, endpoint.host, endpoint.port)
                self._sockets.append(bound)
                self.endpoints.append(endpoint._replace(port=bound.getsockname()[1]))
        except BaseException:
            self.close()
            raise

    async def start(
        self,
        process: Process,
        sink: RequestSink,
        config: BrokerConfig,
        memory: MemoryAccount | None = None,
        security: Mapping[str, ListenerSecurity] = NO_SECURITY,
        quotas: ConnectionQuotas | None = None,
        other_sinks: Mapping[str, RequestSink] = NO_OTHER_SINKS,
    ) -> None:
        """Accept clients and pass their requests to `sink` in the broker's process.

        Requests on the listeners in `other_sinks` go to those sinks instead. `security` is the authentication by
        listener. `memory` counts the bytes of large requests; `quotas` limit the connections (default: the limits
        of `config`, without an inter-broker listener).
        `socket.listen.backlog.size` connections may wait to be accepted, on Linux one more.
        """
        if quotas is None:
            quotas = ConnectionQuotas(config, process.clock)
            quotas.listen(each.listener for each in self.endpoints)
        connections = OpenConnections(process, config.connections_max_idle_ms, quotas)
        self._connections = connections
        self._secured = frozenset(name for name, each in security.items() if each.tls is not None)
        turns = LoginTurns(process)
        if any(each != OPEN for each in security.values()):
            self._read_turns = read_turns(asyncio.get_running_loop(), self._sockets[0])

        async def accept(endpoint: Endpoint, bound: StandardSocket) -> Accepting:
            login, tls = security.get(endpoint.listener, OPEN)
            broker = other_sinks.get(endpoint.listener, sink)
            max_request_bytes = config.socket_request_max_bytes

            def make_connection() -> Connection:
                first_sink, first_max_bytes = broker, max_request_bytes
                if login is not None:
                    first_sink = Login(process, broker, login, max_request_bytes, turns)
                    first_max_bytes = login.max_receive_bytes
                return Connection(
                    process,
                    first_sink,
                    first_max_bytes,
                    connections.add,
                    connections.discard,
                    memory,
                    endpoint.listener,
                    None if tls is None or login is not None else tls.principal_of,
                    self._read_turns if tls is None and login is not None else None,
                )

            return await accept_connections(
                asyncio.get_running_loop(),
                bound,
                make_connection,
                config.socket_listen_backlog_size,
                None if tls is None else tls.context,
                self._read_turns,
            )

        self._accept = accept
        for endpoint in self.endpoints:
            server = await accept(endpoint, self._sockets[0])
            # The server owns the socket: closing it here too could close another socket with its number.
            del self._sockets[0]
            self._servers[endpoint.listener] = server
        for listener in self._held:
            self.hold_clients(listener)

    async def move(self, listeners: Collection[str]) -> None:
        """Move these listeners to other free ports, and abort their connections; call after `start`.

        Clients that know the former ports are refused from now on. Raises OSError with advice.
        """
        assert self._accept is not None
        assert self._connections is not None
        loop = asyncio.get_running_loop()
        for index, endpoint in enumerate(self.endpoints):
            if endpoint.listener not in listeners:
                continue
            bound = bind(loop, endpoint.host, 0)  # while the former port is bound, so that it is a different one
            self._servers.pop(endpoint.listener).close()
            if self._connections.of_listener(endpoint.listener):
                self._keep_taken(endpoint)
            self._connections.abort(endpoint.listener)
            self.endpoints[index] = endpoint._replace(port=bound.getsockname()[1])
            try:
                self._servers[endpoint.listener] = await self._accept(endpoint, bound)
            except BaseException:
                bound.close()
                raise

    def _keep_taken(self, endpoint: Endpoint) -> None:
        with suppress(OSError):  # another process was faster
            self._former.append(bind(asyncio.get_running_loop(), endpoint.host, endpoint.port))
        if len(self._former) > FORMER_PORTS:
            self._former.popleft().close()

    @property
    def connections(self) -> Collection[Connection]:
        """The open connections of clients, on all listeners."""
        return () if self._connections is None else self._connections.all

    def hold_clients(self, listener: str) -> None:
        """Hold the network to clients of the listener: connections are made, but nothing passes on them.

        So TLS handshakes hang. If called before `start`, it holds the connections made after it.
        """
        self._held.add(listener)
        if self._connections is not None:
            self._connections.hold(listener)
        if listener in self._secured and listener in self._servers:
            self._servers[listener].hold()

    def release_clients(self, listener: str) -> None:
        """Release the network: what either side has sent in the meantime arrives now."""
        self._held.discard(listener)
        if self._connections is not None:
            self._connections.release(listener)
        if listener in self._secured and listener in self._servers:
            self._servers[listener].release()

    @property
    def holds_clients(self) -> bool:
        """Whether clients of any listener are held."""
        return bool(self._held)

    def end_connections_of(self, principal: KafkaPrincipal) -> None:
        """Abort the connections that have logged in as this principal."""
        if self._connections is not None:
            self._connections.end_those_of(principal)

    def close(self) -> None:
        """Stop listening and abort all connections."""
        for server in self._servers.values():
            server.close()
        for bound in (*self._sockets, *self._former):
            bound.close()
        self._servers.clear()
        self._sockets.clear()
        self._former.clear()
        if self._read_turns is not None:
            self._read_turns.close()
        if self._connections is not None:
            self._connections.abort_all()

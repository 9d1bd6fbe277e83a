"""The TCP methods of an asyncio loop: servers, connections, names, and sockets that a program creates itself."""

from __future__ import annotations

import asyncio
import socket
from contextvars import copy_context
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from broker_sim.runtime.virtual.core.processes import PROCESS
from broker_sim.runtime.virtual.network.handshake import Handshake
from broker_sim.runtime.virtual.network.hosts import ANY_ADDRESS, LOOPBACK
from broker_sim.runtime.virtual.network.ports import BoundPort, Listener, Ports
from broker_sim.runtime.virtual.network.tls import Tls
from broker_sim.runtime.virtual.network.transport import MemoryTransport

if TYPE_CHECKING:
    import ssl as ssl_module
    from collections.abc import Callable, Iterable

    from broker_sim.runtime.virtual.core.core import Core
    from broker_sim.runtime.virtual.network.hosts import Address
    from broker_sim.runtime.virtual.network.network import Network

AddressInfo = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]
"""An item of what `getaddrinfo` returns."""
_NOT_VIRTUAL = (
    "a socket that was bound or connected outside of the virtual loop; create it in the test, or pass a host and a port"
)


class Tcp:
    """Servers and connections of one virtual network, with the methods of asyncio's loops.

    `asyncio.Server` is asyncio's own: it works on whatever `start_serving` can listen on.

    A program may create a `socket.socket` and hand it to the loop, as aiohttp does on both sides. Nothing is ever sent
    through that socket: a port or a connection of the virtual network takes its place.
    """

    def __init__(self, core: Core, network: Network) -> None:
        self.ports = Ports()
        self._core = core
        self._network = network
        self._bound: WeakKeyDictionary[socket.socket, BoundPort] = WeakKeyDictionary()
        self._connected: WeakKeyDictionary[socket.socket, MemoryTransport] = WeakKeyDictionary()

    # -- names and ports --------------------------------------------------------------------------

    def bind(self, host: str | None, port: int) -> BoundPort:
        """Bind a port, 0 for a free one; an unknown host is created.

        Raises OSError (EADDRINUSE) if the port is taken.
        """
        return self.ports.bind(self._network.hosts.add(host or ""), port)

    def address_info(self, host: str | bytes | None, port: str | int | None) -> list[AddressInfo]:
        """Return the one address of the host. Raises `socket.gaierror` if there is no such host."""
        address = (self._network.hosts.resolve(host), int(port or 0))
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]

    # -- servers ----------------------------------------------------------------------------------

    async def create_server(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | Iterable[str] | None = None,
        port: int | None = None,
        *,
        sock: Any = None,
        backlog: int = 100,
        ssl: ssl_module.SSLContext | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        start_serving: bool = True,
        **_: Any,
    ) -> asyncio.Server:
        """Serve on the virtual network; `sock` may be a port that `bind` returned."""
        if sock is None:
            ports = self._bind_all(host, port)
        elif isinstance(sock, BoundPort):
            ports = [sock]
        else:
            ports = [self._take_bound(sock)]
        server = asyncio.Server(
            self._core.loop,
            ports,  # type: ignore[arg-type]
            protocol_factory,
            ssl,
            backlog,
            ssl_handshake_timeout,
            ssl_shutdown_timeout,
        )
        if start_serving:
            await server.start_serving()
        return server

    def _bind_all(self, host: str | Iterable[str] | None, port: int | None) -> list[BoundPort]:
        hosts = [host] if host is None or isinstance(host, str) else list(host)
        ports: list[BoundPort] = []
        try:
            for one in hosts:
                ports.append(self.bind(one, port or 0))
        except OSError as error:
            for bound in ports:
                bound.close()
            reason = (error.strerror or "").lower()
            message = f"error while attempting to bind on address {(one, port)}: {reason}"
            raise OSError(error.errno, message) from None
        return ports

    def start_serving(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        sock: BoundPort,
        server: asyncio.Server,
        tls: Tls | None,
    ) -> None:
        """Accept connections on a port, in the caller's context and process."""
        sock.listener = Listener(server, protocol_factory, copy_context(), tls)
        process = PROCESS.get()
        if process is not None:
            process.ports[sock] = None

    # -- connections ------------------------------------------------------------------------------

    async def create_connection(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: ssl_module.SSLContext | bool | None = None,
        sock: Any = None,
        local_addr: Address | None = None,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        **_: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect over the virtual network. Raises OSError, including `socket.gaierror`, as in real time."""
        if sock is None and port is None:
            raise ValueError("host and port was not specified and no sock specified")
        tls = None
        if ssl:
            context = _default_context() if ssl is True else ssl
            name = host if server_hostname is None else server_hostname
            tls = Tls(context, ssl_handshake_timeout, ssl_shutdown_timeout, name or None)
        if sock is None:
            assert port is not None
            end = await self._connect(host, port, local_addr)
        else:
            end = self._take_connected(sock)
        protocol = protocol_factory()
        waiter = self._core.loop.create_future()
        transport = end.start(protocol, waiter, tls)
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    async def _connect(self, host: str | None, port: int, local: Address | None = None) -> MemoryTransport:
        """Return the client's end of a new connection, still without a protocol.

        Raises ConnectionRefusedError, TimeoutError or `socket.gaierror` as the real one does.
        """
        network = self._network
        address = network.hosts.resolve(host)
        if address == ANY_ADDRESS:
            address = LOOPBACK
        if local is None:
            own = LOOPBACK if address == LOOPBACK else network.hosts.add(network.current_host)
            local = (own, self.ports.draw_free())
        network.host_of_client[local] = network.current_host
        forth = network.make_pipe(host, address, port)
        transport = MemoryTransport(network, forth, local, (address, port), copy_context())
        transport.pair(MemoryTransport(network, forth.back, (address, port), local, copy_context()))
        await Handshake(self._core, network.hosts, self.ports, transport).establish()
        network.add_connection(forth)
        transport.on_gone = lambda: network.remove_connection(forth)
        return transport

    # -- sockets that a program creates -----------------------------------------------------------

    def bind_socket(self, sock: socket.socket, address: Address) -> None:
        """Bind a port of the virtual network for a socket. Raises OSError if it is taken."""
        self._bound[sock] = self.bind(address[0], address[1])

    def address_of(self, sock: socket.socket) -> Address | None:
        """Return the virtual address of a socket, None if it has none."""
        bound = self._bound.get(sock)
        return None if bound is None else bound.getsockname()

    async def connect_socket(self, sock: socket.socket, address: Any) -> None:
        """Connect a socket to an address of the virtual network, for `create_connection(sock=sock)`."""
        if sock.type != socket.SOCK_STREAM or sock.family not in {socket.AF_INET, socket.AF_INET6}:
            self._core.refuse(f"loop.sock_connect({sock!r}): the virtual network carries TCP only")
        self._connected[sock] = await self._connect(address[0], address[1])

    def _take_bound(self, sock: Any) -> BoundPort:
        """Return the port that a socket stands for, and close the socket."""
        if not isinstance(sock, socket.socket) or sock not in self._bound:
            self._core.refuse(f"create_server(sock={sock!r}): {_NOT_VIRTUAL}")
        sock.close()
        return self._bound.pop(sock)

    def _take_connected(self, sock: Any) -> MemoryTransport:
        """Return the connection that a socket stands for, and close the socket."""
        if not isinstance(sock, socket.socket) or sock not in self._connected:
            self._core.refuse(f"create_connection(sock={sock!r}): {_NOT_VIRTUAL}")
        sock.close()
        return self._connected.pop(sock)


def _default_context() -> ssl_module.SSLContext:
    import ssl  # noqa: PLC0415 - most programs do not need it, and a browser does not have it

    return ssl.create_default_context()

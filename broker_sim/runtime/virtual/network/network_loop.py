"""The part of asyncio's loop interface that makes servers and connections."""

from __future__ import annotations

import asyncio
import socket
import ssl as ssl_module
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NoReturn

from broker_sim.runtime.virtual.current_process import PROCESS
from broker_sim.runtime.virtual.network.ports import BoundPort, Listener
from broker_sim.runtime.virtual.network.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.runtime.virtual.network.network import Network


class NetworkLoop(asyncio.BaseEventLoop):
    """A loop whose servers and connections are those of a virtual network.

    `asyncio.Server` is asyncio's own: it works on whatever `_start_serving` can listen on.
    """

    network: Network

    def refuse(self, what: str) -> NoReturn:
        """Raise EscapeError; the virtual loop ends the run with it too."""
        raise NotImplementedError(what)

    def bind(self, host: str | None, port: int) -> BoundPort:
        """Take a port of the virtual network, 0 for a free one; for `create_server(sock=...)`.

        Raises OSError if it is taken.
        """
        return self.network.bind(host, port)

    async def getaddrinfo(  # type: ignore[override]
        self, host: str | bytes | None, port: str | int | None, **_: int
    ) -> list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]:
        """Return the one address of the host; `socket.gaierror` if there is no such host."""
        address = (self.network.hosts.resolve(host), int(port or 0))
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]

    async def getnameinfo(
        self,
        sockaddr: tuple[str, int] | tuple[str, int, int, int],
        flags: int = 0,  # noqa: ARG002 - asyncio's signature
    ) -> tuple[str, str]:
        """Return address and port as they are."""
        return sockaddr[0], str(sockaddr[1])

    async def create_server(  # type: ignore[override]
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
        """Serve on the virtual network; on `sock` if that is what `bind` returned."""
        if sock is None:
            ports = self._bind_all(host, port)
        elif isinstance(sock, BoundPort):
            ports = [sock]
        else:
            ports = [self.network.sockets.take_bound(sock)]
        server = asyncio.Server(
            self,
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

    def _start_serving(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        sock: BoundPort,
        sslcontext: ssl_module.SSLContext | None,
        server: asyncio.Server,
        backlog: int,
        ssl_handshake_timeout: float | None,
        ssl_shutdown_timeout: float | None,
    ) -> None:
        del backlog
        tls = None
        if sslcontext is not None:
            tls = Tls(sslcontext, ssl_handshake_timeout, ssl_shutdown_timeout, server_side=True)
        sock.listener = Listener(server, protocol_factory, copy_context(), tls)
        process = PROCESS.get()
        if process is not None:
            process.ports[sock] = None

    def _stop_serving(self, sock: BoundPort) -> None:
        sock.close()

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: ssl_module.SSLContext | bool | None = None,
        sock: Any = None,
        local_addr: tuple[str, int] | None = None,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        **_: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect over the virtual network; OSError, also `socket.gaierror`, as in real time."""
        if sock is None and port is None:
            raise ValueError("host and port was not specified and no sock specified")
        tls = None
        if ssl:
            context = ssl_module.create_default_context() if ssl is True else ssl
            name = host if server_hostname is None else server_hostname
            tls = Tls(context, ssl_handshake_timeout, ssl_shutdown_timeout, name or None)
        if sock is None:
            assert port is not None
            end = await self.network.connect(host, port, local_addr)
        else:
            end = self.network.sockets.take_connected(sock)
        protocol = protocol_factory()
        waiter = self.create_future()
        transport = end.start(protocol, waiter, tls)
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Connect over the virtual network, for `create_connection(sock=sock)`: how aiohttp connects."""
        await self.network.sockets.connect(sock, address)

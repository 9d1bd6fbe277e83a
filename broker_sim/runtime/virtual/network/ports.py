"""Hosts, addresses and ports of the virtual network, and what is left of a socket there."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from contextvars import Context

    from broker_sim.runtime.virtual.network.tls import Tls
    from broker_sim.runtime.virtual.network.transport import MemoryTransport

Address = tuple[str, int]
LOOPBACK = "127.0.0.1"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - no machine's interface is bound here
FIRST_FREE_PORT = 49_152
LAST_FREE_PORT = 65_535
_ALIASES = {"localhost": LOOPBACK, "::1": LOOPBACK, "": ANY_ADDRESS, "::": ANY_ADDRESS}


class VirtualSocket:
    """As much of a socket as programs look at: addresses, and options that change nothing."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, address: Address, peer: Address | None = None) -> None:
        self._address = address
        self._peer = peer

    def getsockname(self) -> Address:
        """Return host and port of this end."""
        return self._address

    def getpeername(self) -> Address:
        """Return host and port of the other end; OSError where there is none."""
        if self._peer is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self._peer

    def setsockopt(self, *_: Any) -> None:
        """Do nothing."""

    def getsockopt(self, *_: Any) -> int:
        """Return 0."""
        return 0

    def setblocking(self, flag: bool) -> None:
        """Do nothing: the virtual network never blocks."""

    def fileno(self) -> int:
        """Return -1, as a closed socket does: no file of this machine stands behind it."""
        return -1

    def __repr__(self) -> str:
        peer = "" if self._peer is None else f" to {self._peer}"
        return f"<{type(self).__name__} {self._address}{peer}>"


class Listener:
    """Makes a protocol of each connection that a server accepts."""

    def __init__(
        self,
        server: asyncio.Server,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        context: Context,
        tls: Tls | None,
    ) -> None:
        self.server = server
        self.make_protocol = make_protocol
        self.context = context
        """The context of whoever started the server; accepted connections run in copies of it."""
        self.tls = tls
        self._held: list[MemoryTransport] | None = None
        """Connections that nobody answers; None while all are accepted."""

    def hold(self) -> None:
        """Let connections that are made from now on wait, unanswered, for `release`."""
        if self._held is None:
            self._held = []

    def release(self) -> None:
        """Accept those that have waited, and all others."""
        held, self._held = self._held, None
        for transport in held or ():
            self.context.copy().run(self.accept, transport)

    def close(self) -> None:
        """Reset the connections that have waited: no program is going to accept them."""
        held, self._held = self._held, None
        for transport in held or ():
            transport.refuse()

    def accept(self, transport: MemoryTransport) -> None:
        """Give the accepted connection its protocol; called in a copy of `context`."""
        if self._held is not None:
            self._held.append(transport)
            return
        transport.attach(self.server)
        transport.start(self.make_protocol(), tls=self.tls)


class BoundPort(VirtualSocket):
    """A port that is taken. A server listens on it through `listener`."""

    def __init__(self, ports: Ports, address: Address) -> None:
        super().__init__(address)
        self._ports = ports
        self.listener: Listener | None = None

    def listen(self, backlog: int = 0) -> None:
        """Do nothing: the loop sets `listener`."""

    def hold(self) -> None:
        """Let connections that are made from now on wait, unanswered, for `release`."""
        if self.listener is not None:
            self.listener.hold()

    def release(self) -> None:
        """Accept those that have waited, and all others."""
        if self.listener is not None:
            self.listener.release()

    def close(self) -> None:
        """Give the port back. Idempotent."""
        listener, self.listener = self.listener, None
        self._ports.release(self)
        if listener is not None:
            listener.close()


class Hosts:
    """Names and addresses. There is no real name service; each name is one address."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = dict(_ALIASES)
        self._known: set[str] = set()
        self._made = 0

    def add(self, name: str) -> str:
        """Return the address of a name, or of an address; makes one where there was none."""
        address = self._addresses.get(name)
        if address is None and _is_address(name):
            address = name
        if address is None:
            self._made += 1
            address = f"10.0.{self._made >> 8}.{self._made & 255}"
            self._addresses[name] = address
        if address != ANY_ADDRESS:
            self._known.add(address)
        return address

    def resolve(self, host: str | bytes | None) -> str:
        """Return the address of a host; `socket.gaierror` if the name is unknown."""
        name = host.decode() if isinstance(host, bytes) else host or ""
        address = self._addresses.get(name)
        if address is None:
            if not _is_address(name):
                raise socket.gaierror(
                    socket.EAI_NONAME, f"Name or service not known: the virtual network has no {name!r}"
                )
            address = name
        return address

    def exists(self, address: str) -> bool:
        """Whether there is a machine with that address; to any other a connection times out."""
        return address in self._known or address.startswith("127.")


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


class Ports:
    """Which ports are taken, and by whom."""

    def __init__(self) -> None:
        self._bound: dict[Address, BoundPort] = {}
        self._next_free = FIRST_FREE_PORT

    def bind(self, address: str, port: int) -> BoundPort:
        """Take the port, 0 for a free one; OSError if it is taken."""
        if port == 0:
            port = self.draw_free()
        taken = self._bound.keys() & {(address, port), (ANY_ADDRESS, port)}
        if taken or (address == ANY_ADDRESS and any(port == other for _, other in self._bound)):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        bound = self._bound[address, port] = BoundPort(self, (address, port))
        return bound

    def draw_free(self) -> int:
        """Return the next port that nobody is bound to."""
        taken = {port for _, port in self._bound}
        for _ in range(FIRST_FREE_PORT, LAST_FREE_PORT + 1):
            port = self._next_free
            self._next_free = FIRST_FREE_PORT if port == LAST_FREE_PORT else port + 1
            if port not in taken:
                return port
        raise OSError(errno.EADDRINUSE, "no port is free")

    def release(self, bound: BoundPort) -> None:
        """Give a port back."""
        if self._bound.get(bound.getsockname()) is bound:
            del self._bound[bound.getsockname()]

    def listener(self, address: str, port: int) -> Listener | None:
        """Return who accepts connections there."""
        bound = self._bound.get((address, port)) or self._bound.get((ANY_ADDRESS, port))
        return None if bound is None else bound.listener

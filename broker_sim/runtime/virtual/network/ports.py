"""Ports of the virtual network, and the listeners behind them."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from broker_sim.runtime.virtual.network.hosts import ANY_ADDRESS, VirtualSocket

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from contextvars import Context

    from broker_sim.runtime.virtual.network.hosts import Address
    from broker_sim.runtime.virtual.network.tls import Tls
    from broker_sim.runtime.virtual.network.transport import MemoryTransport

FIRST_FREE_PORT = 49_152
LAST_FREE_PORT = 65_535


class Listener:
    """Accepts a server's connections and gives each one a protocol."""

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
        """The context in which the server was started; accepted connections run in copies of it."""
        self.tls = tls
        self._held: list[MemoryTransport] | None = None
        """Connections kept unanswered by `hold`; None while all are accepted."""

    def hold(self) -> None:
        """Keep new connections waiting, unanswered, until `release`."""
        if self._held is None:
            self._held = []

    def release(self) -> None:
        """Accept the connections that have waited, and all later ones."""
        transports, self._held = self._held, None
        for transport in transports or ():
            self.context.copy().run(self.accept, transport)

    def close(self) -> None:
        """Reset the waiting connections: no program will accept them."""
        transports, self._held = self._held, None
        for transport in transports or ():
            transport.refuse()

    def accept(self, transport: MemoryTransport) -> None:
        """Give the accepted connection its protocol; called in a copy of `context`."""
        if self._held is not None:
            self._held.append(transport)
            return
        transport.attach(self.server)
        transport.start(self.make_protocol(), tls=self.tls)


class BoundPort(VirtualSocket):
    """A bound port. A server listens on it through `listener`."""

    def __init__(self, ports: Ports, address: Address) -> None:
        super().__init__(address)
        self._ports = ports
        self.listener: Listener | None = None

    def listen(self, backlog: int = 0) -> None:
        """Do nothing: the loop sets `listener`."""

    def hold(self) -> None:
        """Keep new connections waiting, unanswered, until `release`."""
        if self.listener is not None:
            self.listener.hold()

    def release(self) -> None:
        """Accept the connections that have waited, and all later ones."""
        if self.listener is not None:
            self.listener.release()

    def close(self) -> None:
        """Release the port. Idempotent."""
        listener, self.listener = self.listener, None
        self._ports.release(self)
        if listener is not None:
            listener.close()

    def on_owner_gone(self) -> None:
        """Release it because its process was killed."""
        self.close()


class Ports:
    """The bound ports."""

    def __init__(self) -> None:
        self._bound: dict[Address, BoundPort] = {}
        self._next_free = FIRST_FREE_PORT

    def bind(self, address: str, port: int) -> BoundPort:
        """Bind a port, 0 for a free one. Raises OSError if it is taken."""
        if port == 0:
            port = self.draw_free()
        addresses_in_use = self._bound.keys() & {(address, port), (ANY_ADDRESS, port)}
        if addresses_in_use or (address == ANY_ADDRESS and any(port == other for _, other in self._bound)):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        bound = self._bound[address, port] = BoundPort(self, (address, port))
        return bound

    def draw_free(self) -> int:
        """Return the next free port."""
        ports_in_use = {port for _, port in self._bound}
        for _ in range(FIRST_FREE_PORT, LAST_FREE_PORT + 1):
            port = self._next_free
            self._next_free = FIRST_FREE_PORT if port == LAST_FREE_PORT else port + 1
            if port not in ports_in_use:
                return port
        raise OSError(errno.EADDRINUSE, "no port is free")

    def release(self, bound: BoundPort) -> None:
        """Release a port."""
        if self._bound.get(bound.getsockname()) is bound:
            del self._bound[bound.getsockname()]

    def listener(self, address: str, port: int) -> Listener | None:
        """Return the listener of that port; None if there is none."""
        bound = self._bound.get((address, port)) or self._bound.get((ANY_ADDRESS, port))
        return None if bound is None else bound.listener

"""Sockets of `socket` that a program makes and hands to the loop: aiohttp does so on both sides.

They stay what they are, and nothing is ever sent through them. What the loop gets in their place is
a port or a connection of the virtual network.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from broker_sim.runtime.virtual.network.network import Network
    from broker_sim.runtime.virtual.network.ports import Address, BoundPort
    from broker_sim.runtime.virtual.network.transport import MemoryTransport

_NOT_VIRTUAL = (
    "a socket that was bound or connected outside of the virtual loop; make it in the test, or give a host and a port"
)


class Sockets:
    """What sockets of the program stand for."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._bound: WeakKeyDictionary[socket.socket, BoundPort] = WeakKeyDictionary()
        self._connected: WeakKeyDictionary[socket.socket, MemoryTransport] = WeakKeyDictionary()

    def bind(self, sock: socket.socket, address: Address) -> None:
        """Take a port of the virtual network for a socket. Raises OSError if it is taken."""
        self._bound[sock] = self._network.bind(address[0], address[1])

    def address_of(self, sock: socket.socket) -> Address | None:
        """Return the virtual address of a socket, None if it has none."""
        bound = self._bound.get(sock)
        return None if bound is None else bound.getsockname()

    def take_bound(self, sock: Any) -> BoundPort:
        """Return the port that a socket stands for, and close the socket."""
        if not isinstance(sock, socket.socket) or sock not in self._bound:
            self._network.loop.refuse(f"create_server(sock={sock!r}): {_NOT_VIRTUAL}")
        sock.close()
        return self._bound.pop(sock)

    async def connect(self, sock: socket.socket, address: Any) -> None:
        """Connect a socket to an address of the virtual network."""
        if sock.type != socket.SOCK_STREAM or sock.family not in {socket.AF_INET, socket.AF_INET6}:
            self._network.loop.refuse(f"loop.sock_connect({sock!r}): the virtual network carries TCP only")
        self._connected[sock] = await self._network.connect(address[0], address[1])

    def take_connected(self, sock: Any) -> MemoryTransport:
        """Return the connection that a socket stands for, and close the socket."""
        if not isinstance(sock, socket.socket) or sock not in self._connected:
            self._network.loop.refuse(f"create_connection(sock={sock!r}): {_NOT_VIRTUAL}")
        sock.close()
        return self._connected.pop(sock)

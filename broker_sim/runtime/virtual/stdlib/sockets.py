"""`socket.socket` in the code of a virtual loop: sockets bind to virtual ports, and never block.

A program that binds one gets a port of the virtual network, the same in each run. Calls that would reach the
real network are refused.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.system import StandardSocket
from broker_sim.runtime.virtual.loop import current_loop

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERNET = {socket.AF_INET, socket.AF_INET6}


def _is_tcp(sock: StandardSocket) -> bool:
    return sock.family in _INTERNET and sock.type == socket.SOCK_STREAM


_real_bind = StandardSocket.bind
_real_getsockname = StandardSocket.getsockname
_real_listen = StandardSocket.listen


def _bind(self: StandardSocket, address: Any, /) -> None:
    loop = current_loop()
    if loop is None or not _is_tcp(self):
        _real_bind(self, address)
    else:
        loop.tcp.bind_socket(self, address)


def _getsockname(self: StandardSocket, /) -> Any:
    loop = current_loop()
    address = None if loop is None else loop.tcp.address_of(self)
    return _real_getsockname(self) if address is None else address


def _listen(self: StandardSocket, *backlog: int) -> None:
    loop = current_loop()
    if loop is None or loop.tcp.address_of(self) is None:
        _real_listen(self, *backlog)


def _blocking(name: str) -> Callable[..., Any]:
    """Return a replacement that refuses the method in the code of a virtual loop."""
    real = getattr(StandardSocket, name)

    def call(self: StandardSocket, *args: Any) -> Any:
        loop = current_loop()
        if loop is not None and _is_tcp(self):
            self.close()  # programs close it after an OSError only
            loop.refuse(
                f"socket.{name}: the real network is outside of virtual time; use asyncio's streams, "
                "create_connection or create_server"
            )
        return real(self, *args)

    return call


REPLACEMENTS: dict[str, Any] = {
    "bind": _bind,
    "getsockname": _getsockname,
    "listen": _listen,
    **{name: _blocking(name) for name in ("accept", "connect", "connect_ex")},
}
"""Replaced methods of `socket.socket`, by name."""

"""The real operating system functions that brokers use, even if a test has replaced the standard library's.

Tests replace sockets and threads of the standard library: HTTPretty, pytest-socket, `mock.patch("socket.socket")`. All
modules of the package take them from here, and clocks from `broker_sim_purgatory.SystemClock`.

Files and sockets opened here are closed in a forked child: otherwise a port, a connection or a lock would live on
in the child.
"""

from __future__ import annotations

import _socket
import os
import select
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

if TYPE_CHECKING:
    StandardSocket = socket.socket
else:
    # Looked up by its base class, because `socket.socket` may be replaced already.
    StandardSocket = next(each for each in _socket.socket.__subclasses__() if each.__module__ == "socket")

Thread: Final = threading.Thread
epoll: Final[Any] = getattr(select, "epoll", None)
"""None on other systems than Linux."""


class Socket(StandardSocket):
    """A socket of brokers; connections that it accepts are such sockets too."""

    __slots__ = ()

    def __init__(self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None) -> None:  # noqa: A002 - its name in the standard library
        super().__init__(family, type, proto, fileno)
        _sockets.add(self)

    def accept(self) -> tuple[Socket, Any]:
        """Return a new connection and the address of its client. Raises OSError."""
        descriptor, address = self._accept()  # type: ignore[attr-defined]
        return Socket(fileno=descriptor), address


class _Files:
    """The real functions, out of reach of pyfakefs, which replaces names in modules."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)


_sockets: WeakSet[Socket] = WeakSet()
_descriptors: set[int] = set()


def are_sockets_replaced() -> bool:
    """Return whether `socket.socket` has been replaced, for example by a mock."""
    return socket.socket is not StandardSocket


def green_threads() -> str | None:
    """Return the name of the library that has patched threads and sockets, gevent or eventlet; None without one."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    names = ("socket", "thread")
    if gevent is not None and any(map(gevent.is_module_patched, names)):
        return "gevent"
    if eventlet is not None and any(map(eventlet.is_monkey_patched, names)):
        return "eventlet"
    return None


def socket_pair() -> tuple[Socket, Socket]:
    """Return two connected sockets. Raises OSError."""
    one, other = _socket.socketpair()
    return Socket(fileno=one.detach()), Socket(fileno=other.detach())


def open_descriptor(path: str, flags: int, mode: int = 0o777) -> int:
    """Open a file as `os.open` does; close it by `close_descriptor`. Raises OSError."""
    descriptor = _Files.open(path, flags, mode)
    _descriptors.add(descriptor)
    return descriptor


def close_descriptor(descriptor: int) -> None:
    """Close a file that `open_descriptor` has opened; does nothing in a forked child, where it is closed.

    Raises OSError.
    """
    if descriptor in _descriptors:
        _descriptors.remove(descriptor)
        _Files.close(descriptor)


def _close_in_child() -> None:
    for each in list(_sockets):
        descriptor = each.detach()  # `close` would wait for uvloop, which holds the socket too
        if descriptor >= 0:
            _socket.close(descriptor)
    for descriptor in list(_descriptors):
        with suppress(OSError):
            close_descriptor(descriptor)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)

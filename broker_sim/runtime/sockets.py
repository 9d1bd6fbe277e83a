"""Ports to listen on: real ones, or those of an event loop that has a network of its own."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["bind"]

PORT_ERRORS = {errno.EADDRINUSE, errno.EACCES}
"""Errors that another port avoids; all other errors are about the host."""


def bind(
    loop: asyncio.AbstractEventLoop, host: str, port: int, *, port_option: str = "--port"
) -> socket.socket:
    """Return a socket bound to `host` and `port`; it does not listen yet.

    `port` 0 takes any free one. A loop with a method `bind(host, port)`, such as the virtual
    loop, binds in its own network; what it returns has `getsockname` and `close`, and its
    `create_server` takes it as `sock`.

    Raises OSError with one line that says what to do; `port_option` names the option to change.
    """
    in_network: Callable[[str, int], socket.socket] = getattr(loop, "bind", _bind)
    try:
        return in_network(host, port)
    except OSError as error:
        advice = (
            f"choose another {port_option}, or 0 for any free one"
            if error.errno in PORT_ERRORS
            else "the host has to be an address of this machine"
        )
        raise OSError(
            error.errno, f"cannot listen on {host}:{port} ({error.strerror}); {advice}"
        ) from error


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A port whose last owner has just closed it is free.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound

"""Ports to listen on: real ones, or ports of an event loop with a network of its own."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from broker_sim.runtime.system import Socket

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker_sim.runtime.system import StandardSocket

PORT_ERRORS = {errno.EADDRINUSE, errno.EACCES}
"""Errors that can be avoided by another port."""
OPEN_FILES_ERRORS = {errno.EMFILE, errno.ENFILE}
"""Errors that can be avoided by a higher limit; all other errors are about the host."""
LIMIT_ADVICE = "raise the limit of open files (ulimit -n)"


def address_text(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an address of IP version 6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bare_host(host: str) -> str:
    """Return an address of IP version 6 without its brackets, any other host as it is."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def bind(
    loop: asyncio.AbstractEventLoop, host: str, port: int, *, argument: str = "ports", option: str = "--port"
) -> StandardSocket:
    """Return a socket bound to `host` and `port`; it does not listen yet.

    `port` 0 takes any free one. A loop with a method `bind(host, port)`, such as the virtual loop, binds in its
    own network; the result has `getsockname` and `close`, and the loop's `create_server` accepts it as `sock`.

    Raises OSError with one line of advice; it names the Python `argument` and the command's `option` to change.
    """
    in_network: Callable[[str, int], StandardSocket] = getattr(loop, "bind", _bind)
    try:
        return in_network(host, port)
    except OSError as error:
        if error.errno in PORT_ERRORS:
            advice = f"choose another ({argument}= in Python, {option} of a command), or 0 for any free one"
        elif error.errno in OPEN_FILES_ERRORS:
            advice = f"{LIMIT_ADVICE}, or use fewer brokers"
        else:
            advice = "the host must be an address of this machine"
        address = address_text(host, port)
        raise OSError(error.errno, f"cannot listen on {address} ({error.strerror}); {advice}") from error


def _share_option() -> int:
    """Return the socket option that makes a port available again as soon as its owner has closed it, but not before.

    Windows needs SO_EXCLUSIVEADDRUSE: SO_REUSEADDR would share the port with another listener there.
    """
    return getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)


def _bind(host: str, port: int) -> Socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = Socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, _share_option(), 1)
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound

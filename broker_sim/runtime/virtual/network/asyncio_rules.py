"""What asyncio's transports refuse, and how its servers keep them."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

_ATTACH_TAKES_TRANSPORT: Final = asyncio.Server._attach.__code__.co_argcount == 2  # type: ignore[attr-defined]
"""From Python 3.13 on a server keeps its transports; before, it counts them."""


def attach(server: Any, transport: object) -> None:
    """Count the transport as one of the server's connections."""
    server._attach(*[transport][: int(_ATTACH_TAKES_TRANSPORT)])


def detach(server: Any, transport: object) -> None:
    """Count it no more."""
    server._detach(*[transport][: int(_ATTACH_TAKES_TRANSPORT)])


def buffer_of(protocol: asyncio.BufferedProtocol) -> memoryview:
    """Return the buffer that the protocol gives for what has arrived. Raises RuntimeError for an empty one."""
    buffer = memoryview(protocol.get_buffer(-1))
    if not buffer:
        raise RuntimeError("get_buffer() returned an empty buffer")
    return buffer


def check_bytes(data: object) -> None:
    """Raise TypeError for what cannot be written."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        kind = type(data).__name__
        raise TypeError(f"data argument must be a bytes-like object, not {kind!r}")


def os_error(number: int) -> OSError:
    """Return the error with that number as the operating system words it."""
    return OSError(number, os.strerror(number))

"""TLS on the virtual network: asyncio's own protocol, which works on any transport."""

from __future__ import annotations

from asyncio import sslproto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import asyncio
    import ssl


class Tls(NamedTuple):
    """The TLS settings of one side of a connection. Timeouts are in seconds, None for asyncio's own."""

    context: ssl.SSLContext
    handshake_timeout: float | None = None
    shutdown_timeout: float | None = None
    server_hostname: str | None = None
    """Name that a client expects in the certificate."""
    server_side: bool = False


def secure(
    loop: asyncio.BaseEventLoop, protocol: asyncio.BaseProtocol, waiter: asyncio.Future[None] | None, tls: Tls
) -> tuple[asyncio.BaseProtocol, asyncio.Transport]:
    """Return the TLS protocol for the connection, and the transport for `protocol`.

    OpenSSL's keys differ from run to run, so the trace omits the bytes.
    """
    secured = sslproto.SSLProtocol(
        loop,
        protocol,
        tls.context,
        waiter,  # type: ignore[arg-type]
        tls.server_side,
        tls.server_hostname,
        ssl_handshake_timeout=tls.handshake_timeout,  # type: ignore[arg-type]
        ssl_shutdown_timeout=tls.shutdown_timeout,
    )
    return secured, secured._app_transport


def is_tls(protocol: asyncio.BaseProtocol) -> bool:
    """Whether the protocol encrypts."""
    return isinstance(protocol, sslproto.SSLProtocol)

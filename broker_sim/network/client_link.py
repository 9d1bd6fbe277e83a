"""The network between one client and its broker: a connection's transport, which can be held.

While it is held nothing passes, and nothing is lost, as with TCP on a network that is cut: what the
broker sends waits here, what the client sends is not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

__all__ = ["ClientLink"]

SEND_BUFFER_BYTES = 100 * 1024
"""How much a held link takes before it is full: Kafka's default for `socket.send.buffer.bytes`."""


class ClientLink:
    """Writes to a client and says when to read from it; does nothing once the client has gone."""

    __slots__ = ("_held", "_held_bytes", "_is_reading", "_transport", "_transport_is_full")

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._transport_is_full = False
        self._is_reading = True
        self._held: list[bytes | bytearray | memoryview] | None = None
        """What waits for the client; None while the link is not held."""
        self._held_bytes = 0

    def attach(self, transport: asyncio.Transport) -> None:
        """Use this transport; before, nothing is written or read."""
        self._transport = transport

    def detach(self) -> None:
        """Forget the transport: the client has gone."""
        self._transport = None

    # -- writing --------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether so much waits for the client that its next request must wait too.

        Kafka looks at a connection's next request when the answer before it is in the send buffer.
        """
        return self._transport_is_full or self._held_bytes >= SEND_BUFFER_BYTES

    def set_transport_full(self, *, is_full: bool) -> None:
        """Learn that the transport's buffer has filled up, or has room again."""
        self._transport_is_full = is_full

    def write(self, chunks: Sequence[bytes | bytearray | memoryview]) -> None:
        """Send one response, now or when the link is released."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._held is None:
            transport.writelines(chunks)
        else:
            self._held += chunks
            self._held_bytes += sum(map(len, chunks))

    # -- reading --------------------------------------------------------------------------------

    def set_reading(self, *, wanted: bool) -> None:
        """Read on, or leave what comes to the operating system; a held link is never read."""
        transport = self._transport
        if wanted == self._is_reading or self._held is not None or transport is None:
            return
        if not transport.is_closing():
            self._is_reading = wanted
            (transport.resume_reading if wanted else transport.pause_reading)()

    def stop_reading(self) -> None:
        """Stop reading, also where the transport goes on although it was told to stop."""
        self._is_reading = False
        if self._transport is not None:
            self._transport.pause_reading()

    # -- the cut --------------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether nothing passes."""
        return self._held is not None

    def hold(self) -> None:
        """Let nothing pass until `release`."""
        if self._held is None:
            self.set_reading(wanted=False)
            self._held = []

    def release(self) -> None:
        """Send what has waited; reading goes on with the next `set_reading`."""
        held, self._held = self._held, None
        self._held_bytes = 0
        if held:
            self.write(held)

    # -- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the transport when it has sent what was written."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the transport at once."""
        if self._transport is not None:
            self._transport.abort()

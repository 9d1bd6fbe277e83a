"""One client connection: frames in, responses out, in order; mirrors ``SocketServer``'s channels.

A frame is a length of four bytes and that many bytes of request. While a request is not answered,
the next one of the connection is not looked at: Kafka mutes the channel in the same way, so that
responses leave in the order of the requests and a parked request holds up those behind it.

Deliberate difference: where a handler fails by a mistake of the broker, Kafka answers
UNKNOWN_SERVER_ERROR; here the error is reported and the connection closed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, cast

from broker_sim.protocol.errors import ProtocolError
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.runtime.process import Process

__all__ = ["Connection", "RequestSink", "Respond"]

log = get_logger(__name__)

LENGTH_BYTES = 4
READ_AHEAD_BYTES = 128 * 1024
"""How much may wait behind a parked request before the connection is no longer read."""
SCRATCH_BYTES = 32 * 1024
"""Frames up to this size are read together and copied out; larger ones are read into their place."""
MAX_PLACE_BYTES = 2 * 1024 * 1024
"""Frames above this size are read piece by piece: who announces much has not sent it yet."""


class Respond(Protocol):
    """Ends a request: chunks to send, or None when the request has no answer (acks=0)."""

    def __call__(self, chunks: Sequence[bytes | bytearray | memoryview] | None) -> None:
        """Answer; called exactly once."""


class RequestSink(Protocol):
    """Where whole requests go: the broker."""

    def handle_frame(self, frame: memoryview, connection: Connection, respond: Respond) -> None:
        """Handle one request; raises ProtocolError where only closing the connection helps."""


class Connection(asyncio.BufferedProtocol):
    """The server's side of one connection; all of it runs on the broker's process.

    Sockets write into `get_buffer`'s answer; what is bytes already comes through `data_received`.
    """

    def __init__(
        self,
        process: Process,
        sink: RequestSink,
        max_request_bytes: int,
        on_made: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self._process = process
        self._sink = sink
        self._max_request_bytes = max_request_bytes
        self._on_made = on_made
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._chunks: list[bytes | bytearray] = []
        self._buffered_bytes = 0
        self._scratch: memoryview | None = None
        self._place: bytearray | None = None
        """Where a large frame is being read to; it has been moved here from the chunks."""
        self._placed_bytes = 0
        self._wanted_bytes = LENGTH_BYTES
        self._muted = False
        self._write_blocked = False
        self._in_loop = False
        self._is_closed = False
        self._reading = True
        self._held_answers: list[bytes | bytearray | memoryview] | None = None
        self.is_active = True
        """Whether bytes have come or gone since this was last set to False."""
        self.peer = "unknown"

    # -- what asyncio calls ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start; the broker learns of the connection."""
        # uvloop's transports have the methods of asyncio.Transport, but not its type.
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer)
        self._on_made(self)
        if self._process.state is ProcessState.DEAD:
            # It was accepted in the moment in which the broker died.
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Forget the client; what it sent before it left is served all the same, as by Kafka."""
        self._transport = None
        self._on_lost(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """Return where to read to: the rest of a large frame that has begun, or a scratch."""
        if self._place is None and SCRATCH_BYTES < self._wanted_bytes <= MAX_PLACE_BYTES:
            self._place = bytearray(self._wanted_bytes)
            self._placed_bytes = self._buffered_bytes
            self._place[: self._placed_bytes] = b"".join(self._chunks)
            self._chunks = []
            self._buffered_bytes = 0
            self._wanted_bytes = LENGTH_BYTES
        if self._place is not None:
            return memoryview(self._place)[self._placed_bytes :]
        if self._scratch is None:
            self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Take in what was read, as `data_received` does."""
        place = self._place
        if place is None:
            assert self._scratch is not None
            self.data_received(bytes(self._scratch[:nbytes]))
            return
        self._placed_bytes += nbytes
        if self._placed_bytes == len(place):
            self._place = None
            self.data_received(place)
        else:
            self._read_no_more_if_paused()
            self._process.deliver(self._on_part_of_frame)

    def data_received(self, data: bytes | bytearray) -> None:
        """Take bytes in, also half frames and several at once; a paused broker reads no more."""
        self._read_no_more_if_paused()
        if self._held_answers is not None and self._transport is not None:
            # A new connection's: uvloop begins to read although `connection_made` has paused it.
            self._transport.pause_reading()
            self._chunks.append(data)
            self._buffered_bytes += len(data)
        else:
            self._process.deliver(self._on_data, data)

    def _read_no_more_if_paused(self) -> None:
        if self._process.state is ProcessState.PAUSED and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Take no further request while the client does not read its responses."""
        self._write_blocked = True

    def resume_writing(self) -> None:
        """Go on with the requests that are here."""
        self._write_blocked = False
        self._process.deliver(self._go_on)

    # -- frames ---------------------------------------------------------------------------------

    def _on_data(self, data: bytes | bytearray) -> None:
        self.is_active = True
        self._chunks.append(data)
        self._buffered_bytes += len(data)
        self._go_on()

    def _on_part_of_frame(self) -> None:
        self.is_active = True
        self._regulate_reading()

    def _go_on(self) -> None:
        self._process_frames()
        self._regulate_reading()

    def _regulate_reading(self) -> None:
        """Read on only while it helps: a muted connection takes in a little and then stops."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        wanted = self._held_answers is None and (
            not self._is_held_up or self._buffered_bytes < READ_AHEAD_BYTES
        )
        if wanted != self._reading:
            self._reading = wanted
            (transport.resume_reading if wanted else transport.pause_reading)()

    def _process_frames(self) -> None:
        """Hand over whole frames, one after the other, as long as each is answered at once."""
        if (
            self._in_loop
            or self._is_held_up
            or self._is_closed
            or self._buffered_bytes < self._wanted_bytes
        ):
            return
        self._in_loop = True
        try:
            data = memoryview(self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks))
            start = 0
            while not (self._is_held_up or self._is_closed):
                remaining = len(data) - start
                if remaining < LENGTH_BYTES:
                    self._wanted_bytes = LENGTH_BYTES
                    break
                size = int.from_bytes(data[start : start + LENGTH_BYTES], "big", signed=True)
                if not 0 < size <= self._max_request_bytes:
                    self.close(f"frame of {size} bytes, allowed are 1 to {self._max_request_bytes}")
                    break
                self._wanted_bytes = LENGTH_BYTES + size
                if remaining < self._wanted_bytes:
                    break
                frame = data[start + LENGTH_BYTES : start + self._wanted_bytes]
                start += self._wanted_bytes
                self._wanted_bytes = LENGTH_BYTES
                self._handle(frame)
            self._keep(data[start:])
        finally:
            self._in_loop = False

    @property
    def _is_held_up(self) -> bool:
        """Whether requests must wait: for the answer before them, or for the client to read."""
        return self._muted or self._write_blocked

    def _keep(self, rest: memoryview) -> None:
        self._buffered_bytes = len(rest)
        self._chunks = [bytes(rest)] if len(rest) else []

    def _handle(self, frame: memoryview) -> None:
        self._muted = True
        try:
            self._sink.handle_frame(frame, self, self._respond)
        except ProtocolError as error:
            self.close(str(error))
        except Exception as error:  # noqa: BLE001 - one request must not end the others
            self.close(f"a request failed: {error!r}")
            self._process.report_error(f"a request of {self.peer} failed", error)

    def _respond(self, chunks: Sequence[bytes | bytearray | memoryview] | None) -> None:
        assert self._muted, "a request is answered once"
        self._muted = False
        self.is_active = True
        transport = self._transport
        if chunks is not None and transport is not None and not transport.is_closing():
            if self._held_answers is None:
                transport.writelines(chunks)
            else:
                self._held_answers += chunks
        if not self._in_loop:
            if self._buffered_bytes >= self._wanted_bytes:
                # Not here: the answer may come from the middle of another connection's request.
                self._process.call_soon(self._process_frames)
            self._regulate_reading()

    # -- the network between client and broker --------------------------------------------------

    def hold(self) -> None:
        """Let nothing pass: what either side sends waits, as TCP keeps it, for `release`."""
        if self._held_answers is None:
            self._held_answers = []
            self._regulate_reading()

    def release(self) -> None:
        """Let pass what has waited, and all that follows."""
        held, self._held_answers = self._held_answers, None
        if held and self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(held)
        self._process.deliver(self._go_on)

    # -- the end --------------------------------------------------------------------------------

    def close(self, reason: str = "") -> None:
        """Close the connection; ``reason`` is logged if there is one."""
        if reason:
            log.warning("connection_closed", peer=self.peer, reason=reason)
        self._is_closed = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Break the connection off, as a killed process does."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()

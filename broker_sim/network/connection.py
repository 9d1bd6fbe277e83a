"""One client connection: requests in, responses out, in order; mirrors the channels of `SocketServer`.

A `Framer` splits the bytes into requests, a `ClientLink` writes and controls reading; this shell
moves the bytes between them and decides when the next request is handled. While a request is
in flight, the next one waits: Kafka mutes the channel in the same way, so that responses leave in
the order of the requests, and a parked request delays those after it.

Deliberate difference: if a handler fails because of a bug in the broker, Kafka returns
UNKNOWN_SERVER_ERROR; here the error is reported and the connection closed.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from broker_sim.config import DEFAULT_LISTENER
from broker_sim.log import MemoryAccount
from broker_sim.network.client_link import ClientLink
from broker_sim.network.file_sender import FileSender
from broker_sim.network.framing import Framer
from broker_sim.protocol.errors import ProtocolError
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.process import ProcessState
from broker_sim.security import ANONYMOUS

UNKNOWN_SOFTWARE: Final = ("unknown", "unknown")
"""Name and version of the library of a client that has not sent them."""

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.protocol.headers import RequestHeader
    from broker_sim.protocol.message import Chunk
    from broker_sim.runtime.process import Process
    from broker_sim.runtime.read_turns import ReadTurns
    from broker_sim.security import KafkaPrincipal

log = get_logger(__name__)

READ_AHEAD_BYTES = 128 * 1024
"""Number of bytes buffered behind a request in flight before the connection is no longer read."""
COUNTED_BYTES: Final = 64 * 1024
"""Minimum number of bytes of requests that is counted, so that small requests cost nothing."""
# Python 3.11 takes 0.1 us to look up an enum member, and every read needs it.
_PAUSED: Final = ProcessState.PAUSED
_USES: Final = count()
"""Sequence numbers of reads and writes; only their order matters."""
SendResponse: TypeAlias = "Callable[[Sequence[Chunk] | None], None]"
"""Sends the bytes of a response, None for a request without one (acks=0); called exactly once for every request."""


class RequestSink(Protocol):
    """Receives whole requests; implemented by the broker."""

    def handle_frame(self, frame: memoryview, connection: Connection, send_response: SendResponse, /) -> None:
        """Handle one request; raises ProtocolError if the connection must be closed."""


class Connection(asyncio.BufferedProtocol):
    """The server's side of one connection; it runs in the broker's process.

    asyncio's and uvloop's transports read into `get_buffer`; other callers pass bytes to `data_received`.
    """

    def __init__(
        self,
        process: Process,
        sink: RequestSink,
        max_request_bytes: int,
        on_made: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
        memory: MemoryAccount | None = None,
        listener: str = DEFAULT_LISTENER,
        principal_of: Callable[[asyncio.BaseTransport], KafkaPrincipal | None] | None = None,
        read_turns: ReadTurns | None = None,
    ) -> None:
        """`memory` counts the bytes of large requests, if given.

        `principal_of(transport)` returns the principal of the client's certificate, None if no mapping rule
        matches. With `read_turns`, reading alternates with other connections until the client has logged in.
        """
        self.listener = listener
        self._principal_of = principal_of
        self.principal = ANONYMOUS
        self.may_ask_for_tokens = False
        """Whether the client has authenticated, but not with a delegation token."""
        self._process = process
        self._sink = sink
        self._on_made = on_made
        self._on_lost = on_lost
        self._framer = Framer(max_request_bytes)
        self._memory = memory or MemoryAccount()
        self._counted_bytes = 0
        """Bytes of its requests that the cluster's memory counts."""
        self._served_bytes = 0
        """Size of the request in flight, in bytes."""
        self._link = ClientLink(read_turns)
        self._is_muted = False
        """Whether a request is in flight."""
        self._throttles = 0
        """Number of `start_throttling` calls without an `end_throttling`."""
        self._is_serving = False
        """Whether `_serve_requests` is running."""
        self._is_closed = False
        self._when_lost: list[Callable[[], object]] = []
        self.last_request: RequestHeader | None = None
        """The header of the last request that its broker has handled."""
        self.software = UNKNOWN_SOFTWARE
        """Name and version of the client's library, from its ApiVersions request."""
        self.last_use = next(_USES)
        """Sequence number of the connection's last use, higher than those of all connections used earlier."""
        self.port = 0
        self.peer = "unknown"
        self.ip = "unknown"

    # -- what asyncio calls ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Attach the transport, and report the connection to the broker."""
        # uvloop's transports have the methods of asyncio.Transport, but not its type.
        attached = cast("asyncio.Transport", transport)
        self._link.attach(attached, self._file_sender(attached))
        if not self._link.reads_freely:
            # uvloop starts reading after this method returns, even if it was paused before.
            asyncio.get_running_loop().call_soon(self._link.begin_turns)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.ip, self.port = peer[:2]
            self.peer = f"{self.ip}:{self.port}"
        self._on_made(self)
        if self._process.state is ProcessState.DEAD:
            # The client was accepted while the broker was dying.
            self.abort()
        elif self._principal_of is not None:
            principal = self._principal_of(transport)
            if principal is None:
                self.close("no rule of ssl.principal.mapping.rules matches its certificate")
            else:
                self.principal = principal
                self.may_ask_for_tokens = principal != ANONYMOUS

    def _file_sender(self, transport: asyncio.Transport) -> FileSender | None:
        """Return the sender of parts of files on the transport, None if the transport does not support it."""
        if not FileSender.can_send_on(transport):
            return None
        return FileSender(
            transport,
            asyncio.get_running_loop(),
            self._process,
            on_progress=self._on_progress,
            on_done=self._on_files_sent,
            on_failed=self._on_files_failed,
        )

    @property
    def sends_files(self) -> bool:
        """Whether responses on this connection may contain parts of files."""
        return self._link.sends_files

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Drop the client; requests that it sent before it disconnected are still served, as by Kafka."""
        self._link.detach()
        self._framer.end()
        if self._is_closed:
            self._framer.forget()
        if self._process.state is ProcessState.DEAD:
            self._served_bytes = 0  # it will not be answered
        if self._counted_bytes:
            self._count_memory()
        self._on_lost(self)
        callbacks, self._when_lost = self._when_lost, []
        for callback in callbacks:
            self._process.deliver(self._process.actions.serve, callback)

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Call `callback()` once, in the broker's process, when the client disconnects."""
        self._when_lost.append(callback)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """Return memory to read into."""
        return self._framer.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes read into the last `get_buffer`."""
        self._framer.buffer_updated(nbytes)
        self._on_received()

    def data_received(self, data: bytes | bytearray) -> None:
        """Process received bytes: parts of requests, or several requests at once."""
        self._framer.receive_data(data)
        self._on_received()

    def pause_writing(self) -> None:
        """Handle no further request while the client does not read its responses."""
        self._link.set_transport_full(is_full=True)

    def resume_writing(self) -> None:
        """Continue with the buffered requests."""
        self._link.set_transport_full(is_full=False)
        self._process.deliver(self._serve_requests)

    def eof_received(self) -> bool:
        """Return whether the connection stays open, for a response that is being sent from files."""
        if self._link.is_sending_files:
            self._is_closed = True
            self._link.close()
            return True
        return False

    def _on_progress(self) -> None:
        self.last_use = next(_USES)

    def _on_files_sent(self) -> None:
        self._link.files_sent()
        if self._framer.buffered_bytes:
            self._process.call_soon(self._serve_requests)

    def _on_files_failed(self, reason: str) -> None:
        self.log_end(reason)
        self.abort()

    # -- requests and responses -----------------------------------------------------------------

    def _on_received(self) -> None:
        self.last_use = next(_USES)
        if not self._link.reads_freely:
            # uvloop reads from a new connection even though `hold` has paused it.
            self._link.stop_reading()
            if self._link.is_held:
                return
        process = self._process
        if process.runs:
            self._serve_requests()
            return
        if process.state is _PAUSED:
            # Later bytes stay in the operating system, as for a stopped process.
            self._link.stop_reading()
        process.deliver(self._serve_requests)

    def _serve_requests(self) -> None:
        """Handle requests one after the other, as long as each is answered at once."""
        if self._is_serving:
            return
        self._is_serving = True
        framer = self._framer
        link = self._link
        try:
            while framer.buffered_bytes and not (self._is_muted or self._throttles or self._is_closed or link.is_full):
                frame = framer.next_frame()
                if frame is None:
                    break
                self._is_muted = True
                self._served_bytes = len(frame)
                self._sink.handle_frame(frame, self, self._send_response)
        except Exception as error:  # noqa: BLE001 - one request must not end the others
            self.fail(error)
        finally:
            self._is_serving = False
        if framer.held_bytes + self._served_bytes >= COUNTED_BYTES or self._counted_bytes:
            self._count_memory()
        # Behind a request in flight, read only a limited number of bytes ahead.
        reads = framer.buffered_bytes < READ_AHEAD_BYTES or not (self._is_muted or self._throttles or link.is_full)
        if reads != link.is_reading:
            link.set_reading(reads=reads)

    def fail(self, error: Exception) -> None:
        """Close the connection, because its request in flight cannot be answered."""
        if isinstance(error, ProtocolError):
            self.close(str(error))
            return
        self.close(f"a request failed: {error!r}")
        self._process.report_error(f"a request of {self.peer} failed", error)

    def _count_memory(self) -> None:
        """Count the memory of requests from their first bytes to their response; close the connection at the limit.

        Mirrors the memory pool of `queued.max.request.bytes`. Deliberate differences: it is always on, and while
        Kafka stops reading when the pool is exhausted, here the connection that would exceed the limit is closed,
        because its request might never be complete.
        """
        if not self._grow_memory(self._framer.held_bytes + self._served_bytes):
            self._framer.forget()
            self._end("its request needs more memory than the limit of the cluster leaves")
            self._grow_memory(self._served_bytes)

    def _grow_memory(self, held_bytes: int) -> bool:
        """Change the counted bytes; return False, and leave them, if they would exceed the cluster's limit."""
        counted_bytes = held_bytes if held_bytes >= COUNTED_BYTES else 0
        if not self._memory.grow_requests(counted_bytes - self._counted_bytes):
            return False
        self._counted_bytes = counted_bytes
        return True

    def _send_response(self, chunks: Sequence[Chunk] | None) -> None:
        assert self._is_muted, "a request is answered once"
        self._is_muted = False
        self._served_bytes = 0
        self.last_use = next(_USES)
        if self._counted_bytes and not self._is_serving:
            self._count_memory()
        if chunks is not None:
            self._link.write(chunks)
        if not self._is_serving and self._framer.buffered_bytes:
            # Not directly: this may be called while another connection's request is being handled.
            self._process.call_soon(self._serve_requests)

    def start_throttling(self) -> None:
        """Handle no request until `end_throttling` has been called equally often; responses are still sent."""
        self._throttles += 1

    def end_throttling(self) -> None:
        """Undo one `start_throttling`, and handle requests that have arrived in the meantime."""
        self._throttles -= 1
        if not self._throttles and self._framer.buffered_bytes:
            self._process.call_soon(self._serve_requests)

    def logged_in(
        self, principal: KafkaPrincipal, sink: RequestSink, max_request_bytes: int, *, by_token: bool
    ) -> None:
        """Pass later requests to `sink`: the client has authenticated, with a delegation token if `by_token`."""
        self.principal = principal
        self.may_ask_for_tokens = not by_token
        self._sink = sink
        self._framer.max_frame_bytes = max_request_bytes
        self._link.end_turns()

    # -- the network between client and broker --------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether the network to the client is held."""
        return self._link.is_held

    def hold(self) -> None:
        """Hold the network to the client: what either side sends waits for `release`, as in TCP."""
        self._link.hold()

    def release(self) -> None:
        """Deliver what has waited, and stop holding."""
        self._link.release()
        self._process.deliver(self._serve_requests)

    # -- the end --------------------------------------------------------------------------------

    def close(self, reason: str = "") -> None:
        """Close the connection; a non-empty `reason` is logged. A request in flight is not answered."""
        self._served_bytes = 0
        if self._counted_bytes and not self._is_serving:
            self._count_memory()
        self._end(reason)

    def _end(self, reason: str) -> None:
        self.log_end(reason)
        self._is_closed = True
        self._link.close()

    def log_end(self, reason: str) -> None:
        """Log the reason for closing the connection, unless it is empty."""
        if reason:
            log.bind(self._process.clock, node=self._process.name).warning(
                "connection_closed", peer=self.peer, reason=reason
            )

    def abort(self) -> None:
        """Abort the connection, as a killed process does."""
        self._is_closed = True
        self._link.abort()

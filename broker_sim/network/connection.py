"""One client connection: requests in, responses out, in order; mirrors the channels of `SocketServer`.

A `Framer` cuts the bytes into requests, a `ClientLink` writes and says when to read; this shell
moves the bytes between them and decides when the next request is handed over. While a request is
not answered, the one behind it is not looked at: Kafka mutes the channel in the same way, so that
responses leave in the order of the requests, and a parked request holds up those behind it.

Deliberate difference: where a handler fails by a mistake of the broker, Kafka answers
UNKNOWN_SERVER_ERROR; here the error is reported and the connection closed.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol, cast

from broker_sim.config import DEFAULT_LISTENER
from broker_sim.log import MemoryAccount
from broker_sim.network.client_link import ClientLink
from broker_sim.network.file_sender import FileSender
from broker_sim.network.frame_memory import COUNTED_BYTES, FrameMemory
from broker_sim.network.framing import Framer
from broker_sim.protocol.errors import ProtocolError
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.process import ProcessState
from broker_sim.security import ANONYMOUS

UNKNOWN_SOFTWARE: Final = ("unknown", "unknown")
"""Name and version of a client's library that has not said it."""

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.protocol.headers import RequestHeader
    from broker_sim.protocol.message import Chunk
    from broker_sim.runtime.process import Process
    from broker_sim.runtime.read_turns import ReadTurns
    from broker_sim.security import KafkaPrincipal

log = get_logger(__name__)

READ_AHEAD_BYTES = 128 * 1024
"""Number of bytes that may wait behind a request in flight before the connection is no longer read."""
# Python 3.11 takes 0.1 us to look an enum's member up, and every read needs it.
_PAUSED: Final = ProcessState.PAUSED
_USES: Final = count()
"""Numbers the moments at which bytes come or go; only their order counts."""


class SendResponse(Protocol):
    """Sends the bytes of a response, or None where the request has none (acks=0)."""

    def __call__(self, chunks: Sequence[Chunk] | None, /) -> None:
        """Send them and let the next request in; called exactly once for every request."""


class RequestSink(Protocol):
    """Receives whole requests: the broker."""

    def handle_frame(self, frame: memoryview, connection: Connection, send_response: SendResponse, /) -> None:
        """Handle one request; raises ProtocolError where only closing the connection helps."""


class Connection(asyncio.BufferedProtocol):
    """The server's side of one connection; all of it runs on the broker's process.

    asyncio's and uvloop's transports read into `get_buffer`; who has bytes calls `data_received`.
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
        """Count in `memory` what large requests take, if it is given.

        `principal_of` says who the client is by its certificate, None if that cannot be said. With `read_turns`
        the client is read in turns with others until it has logged in.
        """
        self.listener = listener
        self._principal_of = principal_of
        self.principal = ANONYMOUS
        self.may_ask_for_tokens = False
        """Whether the client has shown who it is, and not by a delegation token."""
        self._process = process
        self._sink = sink
        self._on_made = on_made
        self._on_lost = on_lost
        self._framer = Framer(max_request_bytes)
        self._memory = FrameMemory(memory or MemoryAccount())
        self._served_bytes = 0
        """The size of the request in flight."""
        self._link = ClientLink(read_turns)
        self._is_muted = False
        """Whether a request is in flight."""
        self._throttles = 0
        """Number of calls of `start_throttling` that have not been ended."""
        self._is_serving = False
        """Whether `_serve_requests` is running."""
        self._is_closed = False
        self._when_lost: list[Callable[[], object]] = []
        self.last_request: RequestHeader | None = None
        self.software = UNKNOWN_SOFTWARE
        """The header of the last request that its broker has handled."""
        self.last_use = next(_USES)
        """The number of its last use: it is higher than those of all connections that were used before."""
        self.peer = "unknown"
        self.ip = "unknown"

    # -- what asyncio calls ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start; the broker learns of the connection."""
        # uvloop's transports have the methods of asyncio.Transport, but not its type.
        attached = cast("asyncio.Transport", transport)
        self._link.attach(attached, self._file_sender(attached))
        if not self._link.reads_freely:
            # uvloop begins to read when this method has returned, whatever it was told before.
            asyncio.get_running_loop().call_soon(self._link.begin_turns)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.ip = peer[0]
            self.peer = f"{peer[0]}:{peer[1]}"
        self._on_made(self)
        if self._process.state is ProcessState.DEAD:
            # The client was accepted while the broker died.
            self.abort()
        elif self._principal_of is not None:
            principal = self._principal_of(transport)
            if principal is None:
                self.close("no rule of ssl.principal.mapping.rules matches its certificate")
            else:
                self.principal = principal
                self.may_ask_for_tokens = principal != ANONYMOUS

    def _file_sender(self, transport: asyncio.Transport) -> FileSender | None:
        """Return what sends parts of files on the transport, None if they must be read for it."""
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
        """Whether responses on this connection may have parts of files."""
        return self._link.sends_files

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Forget the client; requests that it sent before it left are still served, as by Kafka."""
        self._link.detach()
        self._framer.end()
        if self._is_closed:
            self._framer.forget()
        if self._process.state is ProcessState.DEAD:
            self._served_bytes = 0  # nobody will answer
        if self._memory.is_counting:
            self._count_memory()
        self._on_lost(self)
        callbacks, self._when_lost = self._when_lost, []
        for callback in callbacks:
            self._process.deliver(self._process.actions.serve, callback)

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Call `callback()` once, in the broker's process, when the client has gone."""
        self._when_lost.append(callback)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """Return memory to read into."""
        return self._framer.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take in what was read into the last `get_buffer`."""
        self._framer.buffer_updated(nbytes)
        self._on_received()

    def data_received(self, data: bytes | bytearray) -> None:
        """Take in bytes, also parts of requests and several at once."""
        self._framer.receive_data(data)
        self._on_received()

    def pause_writing(self) -> None:
        """Take no further request while the client does not read its responses."""
        self._link.set_transport_full(is_full=True)

    def resume_writing(self) -> None:
        """Go on with the requests that are here."""
        self._link.set_transport_full(is_full=False)
        self._process.deliver(self._serve_requests)

    def eof_received(self) -> bool:
        """Return whether the connection stays, for a response that is being sent from files."""
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
            # uvloop reads from a new connection although `hold` has paused it.
            self._link.stop_reading()
            if self._link.is_held:
                return
        process = self._process
        if process.runs:
            self._serve_requests()
            return
        if process.state is _PAUSED:
            # What comes next stays with the operating system, as for a stopped process.
            self._link.stop_reading()
        process.deliver(self._serve_requests)

    def _serve_requests(self) -> None:
        """Hand over requests one after the other, for as long as each is answered at once."""
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
        if framer.held_bytes + self._served_bytes >= COUNTED_BYTES or self._memory.is_counting:
            self._count_memory()
        # Read on only while it helps: behind a request in flight a little, then no more.
        reads = framer.buffered_bytes < READ_AHEAD_BYTES or not (self._is_muted or self._throttles or link.is_full)
        if reads != link.is_reading:
            link.set_reading(reads=reads)

    def fail(self, error: Exception) -> None:
        """End the connection, because its request in flight cannot be answered."""
        if isinstance(error, ProtocolError):
            self.close(str(error))
            return
        self.close(f"a request failed: {error!r}")
        self._process.report_error(f"a request of {self.peer} failed", error)

    def _count_memory(self) -> None:
        """Count what the requests take now; close the connection if there is no room for it."""
        if not self._memory.count(self._framer.held_bytes + self._served_bytes):
            self._framer.forget()
            self._end("its request needs more memory than the limit of the cluster leaves")
            self._memory.count(self._served_bytes)

    def _send_response(self, chunks: Sequence[Chunk] | None) -> None:
        assert self._is_muted, "a request is answered once"
        self._is_muted = False
        self._served_bytes = 0
        self.last_use = next(_USES)
        if self._memory.is_counting and not self._is_serving:
            self._count_memory()
        if chunks is not None:
            self._link.write(chunks)
        if not self._is_serving and self._framer.buffered_bytes:
            # Not here: the answer may come from the middle of another connection's request.
            self._process.call_soon(self._serve_requests)

    def start_throttling(self) -> None:
        """Take no request until `end_throttling` was called as often; a response may still be sent."""
        self._throttles += 1

    def end_throttling(self) -> None:
        """Take the requests that have come meanwhile."""
        self._throttles -= 1
        if not self._throttles and self._framer.buffered_bytes:
            self._process.call_soon(self._serve_requests)

    def logged_in(
        self, principal: KafkaPrincipal, sink: RequestSink, max_request_bytes: int, *, by_token: bool
    ) -> None:
        """Hand what comes from now on to `sink`: the client is known, maybe by a delegation token."""
        self.principal = principal
        self.may_ask_for_tokens = not by_token
        self._sink = sink
        self._framer.max_frame_bytes = max_request_bytes
        self._link.end_turns()

    # -- the network between client and broker --------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether nothing passes."""
        return self._link.is_held

    def hold(self) -> None:
        """Let nothing pass: what either side sends waits, as TCP keeps it, for `release`."""
        self._link.hold()

    def release(self) -> None:
        """Let pass what has waited, and everything after it."""
        self._link.release()
        self._process.deliver(self._serve_requests)

    # -- the end --------------------------------------------------------------------------------

    def close(self, reason: str = "") -> None:
        """Close the connection; `reason` is logged if there is one. A request in flight is not answered."""
        self._served_bytes = 0
        if self._memory.is_counting and not self._is_serving:
            self._count_memory()
        self._end(reason)

    def _end(self, reason: str) -> None:
        self.log_end(reason)
        self._is_closed = True
        self._link.close()

    def log_end(self, reason: str) -> None:
        """Log why the connection is closed, if there is a reason."""
        if reason:
            log.bind(self._process.clock, node=self._process.name).warning(
                "connection_closed", peer=self.peer, reason=reason
            )

    def abort(self) -> None:
        """Break the connection off, as a killed process does."""
        self._is_closed = True
        self._link.abort()

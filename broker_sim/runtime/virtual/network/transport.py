"""One end of an in-memory connection: does what asyncio's socket transport does.

Names and behaviour follow asyncio's selector transport: `close` writes the buffered data and then sends an
end, `abort` drops what the kernel has not accepted, and a socket that is closed with unread data sends a
reset.
"""

from __future__ import annotations

import asyncio
import errno
import os
import zlib
from asyncio import constants
from asyncio.transports import _FlowControlMixin
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from broker_sim.runtime.virtual.core.processes import PROCESS
from broker_sim.runtime.virtual.network.hosts import VirtualSocket
from broker_sim.runtime.virtual.network.tls import Tls, is_tls, secure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextvars import Context

    from broker_sim.runtime.virtual.core.processes import Process
    from broker_sim.runtime.virtual.network.hosts import Address
    from broker_sim.runtime.virtual.network.network import Network, Pipe

END: Final = b""
"""The end of the other side's data, in an inbox."""
_ATTACH_TAKES_TRANSPORT: Final = asyncio.Server._attach.__code__.co_argcount == 2  # type: ignore[attr-defined]
"""From Python 3.13 on a server keeps its transports; earlier versions count them."""


class Outgoing:
    """Sends data through a pipe; `on_data` and `on_end` run at the other end.

    The window stands for the buffers of both kernels: it holds data that the other side has not read.
    The backlog is the transport's own buffer, on which `pause_writing` and `drain` depend.
    """

    __slots__ = ("_backlog", "_in_flight_bytes", "_network", "_on_data", "_on_end", "_pipe",
                 "backlog_bytes", "end_sent")  # fmt: skip

    def __init__(
        self, network: Network, pipe: Pipe, on_data: Callable[[bytes], object], on_end: Callable[[], object]
    ) -> None:
        self._network = network
        self._pipe = pipe
        self._on_data = on_data
        self._on_end = on_end
        self._backlog: deque[bytes] = deque()
        self._in_flight_bytes = 0
        self.backlog_bytes = 0
        self.end_sent = False

    def write(self, data: bytes) -> None:
        """Send as much as fits into the window, and keep the rest for `on_read`."""
        size = len(data)
        if not self.backlog_bytes and self._in_flight_bytes + size <= self._network.window_bytes:
            self._send(data, size)
            return
        self._backlog.append(data)
        self.backlog_bytes += size
        self._fill_window()

    def on_read(self, size: int) -> None:
        """Free window space: the other side has read `size` bytes."""
        self._in_flight_bytes -= size
        if self.backlog_bytes:
            self._fill_window()

    def send_end(self) -> None:
        """Send the end, once."""
        if not self.end_sent:
            self.end_sent = True
            self._pipe.send(self._on_end)

    def drop_backlog(self) -> None:
        """Drop the unsent data."""
        self._backlog.clear()
        self.backlog_bytes = 0

    def _fill_window(self) -> None:
        backlog = self._backlog
        while backlog and (room := self._network.window_bytes - self._in_flight_bytes) > 0:
            data = backlog.popleft()
            if len(data) > room:
                backlog.appendleft(data[room:])
                data = data[:room]
            self.backlog_bytes -= len(data)
            self._send(data, len(data))

    def _send(self, data: bytes, size: int) -> None:
        self._in_flight_bytes += size
        if self._network.fragments:
            for part in self._network.split(data):
                self._pipe.send(self._on_data, part)
        else:
            self._pipe.send(self._on_data, data)


class MemoryTransport(_FlowControlMixin):
    """Reads from one pipe and writes to another."""

    _start_tls_compatible = True
    _sendfile_compatible = constants._SendfileMode.FALLBACK

    def __init__(self, network: Network, pipe: Pipe, own: Address, other: Address, context: Context) -> None:
        core = network.core
        extra = {"sockname": own, "peername": other, "socket": VirtualSocket(own, other)}
        super().__init__(extra, core.loop)
        self.pipe = pipe
        """The pipe that this end writes to."""
        self.peer: MemoryTransport
        self.on_gone: Callable[[], object] | None = None
        self._network = network
        self._core = core
        self._context = context
        self._number = core.next_number()
        self._protocol: Any = None
        self._is_buffered = False
        self._server: Any = None
        self._inbox: deque[bytes | None] = deque()
        """Unread data; None is a reset."""
        self._started = False
        self._paused = False
        self._closing = False
        self._conn_lost = 0
        """Not 0 once `connection_lost` is scheduled."""
        self._gone = False
        """Whether the socket is closed."""
        self._ended = False
        """Whether the other side's end has been read."""
        self._was_reset = False
        self._eof = False
        self._owner: Process | None = None
        self._outgoing: Outgoing
        pipe.on_give_up = self._on_give_up
        pipe.on_break = self._break_off

    def __hash__(self) -> int:
        return self._number

    def __repr__(self) -> str:
        return f"<MemoryTransport {self.pipe.name} {'closing' if self._closing else 'open'}>"

    # -- what the network calls -------------------------------------------------------------------

    def pair(self, peer: MemoryTransport) -> None:
        """Join the two ends."""
        for one, other in ((self, peer), (peer, self)):
            one.peer = other
            one._outgoing = Outgoing(self._network, one.pipe, other._on_data, other._on_end)
        self.use_context(self._context)

    def use_context(self, context: Context) -> None:
        """Call the protocol's methods in that context."""
        self._context = context
        self.peer.pipe.context = context
        self._owner = context.get(PROCESS)
        if self._owner is not None:
            self._owner.connections[self] = None

    def attach(self, server: Any) -> None:
        """Count as one of the server's connections until this end is closed."""
        self._server = server
        server._attach(*((self,) if _ATTACH_TAKES_TRANSPORT else ()))

    def start(
        self, protocol: asyncio.BaseProtocol, waiter: asyncio.Future[None] | None = None, tls: Tls | None = None
    ) -> asyncio.Transport:
        """Give the connection to its protocol; return the transport that the protocol gets."""
        transport: asyncio.Transport = self
        if tls is not None:
            protocol, transport = secure(self._core.loop, protocol, waiter, tls)
            waiter = None
        self.set_protocol(protocol)
        self._core.call_soon(self._start, waiter, context=self._context)
        return transport

    def _start(self, waiter: asyncio.Future[None] | None) -> None:
        try:
            self._protocol.connection_made(self)
        finally:
            self._started = True
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        self._read_inbox()

    def discard(self, *, connected: bool) -> None:
        """Close an end that never got a protocol; if `connected`, the other side is notified."""
        self._conn_lost += 1
        self._closing = True
        self._was_reset = self._was_reset or not connected
        self._close_socket()

    def refuse(self) -> None:
        """Reset a connection that no program will accept."""
        if not self._gone:
            self.discard(connected=False)
            self.pipe.send(self.peer.on_reset)

    def on_owner_gone(self) -> None:
        """Close the connection because its process was killed; its protocol is not notified."""
        self.peer.pipe.context = self._core.processes.outside
        self._outgoing.drop_backlog()
        if not self._gone:
            self.discard(connected=not self._was_reset)

    def _break_off(self) -> None:
        """Reset both ends, as a middlebox may do."""
        for end in (self, self.peer):
            self._core.call_soon(end.on_reset, context=end._context)

    def _on_data(self, data: bytes) -> None:
        pipe = self.peer.pipe
        content = () if pipe.opaque else (len(data), zlib.crc32(data))
        self._core.trace.record(pipe.name, *content)
        if self._gone:
            self.pipe.send(self.peer.on_reset)
        elif self._reads and not self._inbox:
            self._feed(data)
        else:
            self._inbox.append(data)

    def _on_end(self) -> None:
        self._core.trace.record(self.peer.pipe.name, "end")
        if self._gone:
            return
        if self._reads and not self._inbox:
            self._read_end()
        else:
            self._inbox.append(END)

    def on_reset(self) -> None:
        """Receive a reset; the program learns of it when it reads or writes."""
        if self._gone or self._was_reset:
            return
        self._core.trace.record(self.peer.pipe.name, "reset")
        self._was_reset = True
        if self._closing or (self._reads and not self._inbox):
            self._force_close(_os_error(errno.ECONNRESET))
        else:
            self._inbox.append(None)

    def _on_window(self, size: int) -> None:
        """Learn that the other side has read `size` bytes; only sent to an end that waits for it."""
        outgoing = self._outgoing
        outgoing.on_read(size)
        if self._conn_lost:
            return
        self._maybe_resume_protocol()  # type: ignore[attr-defined]
        if outgoing.backlog_bytes:
            return
        if self._closing:
            self._schedule_lost(None)
        elif self._eof:
            outgoing.send_end()

    def _on_give_up(self) -> None:
        self._was_reset = True  # the other side is not notified, since no data passes
        if not self._gone:
            self._force_close(_os_error(errno.ETIMEDOUT))

    # -- reading ----------------------------------------------------------------------------------

    @property
    def _reads(self) -> bool:
        return self._started and not (self._paused or self._closing or self._ended)

    def _read_inbox(self) -> None:
        inbox = self._inbox
        while inbox and self._reads:
            data = inbox.popleft()
            if data is None:
                self._force_close(_os_error(errno.ECONNRESET))
            elif data:
                self._feed(data)
            else:
                self._read_end()

    def _feed(self, data: bytes) -> None:
        try:
            if self._is_buffered:
                self._feed_buffered(memoryview(data))
            else:
                self._on_read(len(data))
                self._protocol.data_received(data)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as asyncio: whatever it is ends the connection
            self._fatal_error(error, "the protocol failed in data_received or buffer_updated")

    def _feed_buffered(self, data: memoryview) -> None:
        protocol = self._protocol
        while data:
            try:
                buffer = _buffer_of(protocol)
            except BaseException:
                self._inbox.appendleft(bytes(data))  # this part stays unread
                raise
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            data = data[size:]
            self._on_read(size)
            protocol.buffer_updated(size)
            if data and not (self._reads and self._protocol is protocol):
                self._inbox.appendleft(bytes(data))
                if self._reads:
                    self._core.call_soon(self._read_inbox, context=self._context)
                return

    def _on_read(self, size: int) -> None:
        """Give the sender room in its window; it is notified only if it waits for it."""
        peer = self.peer
        if peer._outgoing.backlog_bytes:
            self.pipe.send(peer._on_window, size)
        else:
            peer._outgoing.on_read(size)

    def _read_end(self) -> None:
        try:
            stays_open = self._protocol.eof_received()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as asyncio
            self._fatal_error(error, "the protocol failed in eof_received")
            return
        self._ended = True
        if not stays_open:
            self.close()

    def pause_reading(self) -> None:
        """Leave arriving data in the inbox."""
        if not self._closing:
            self._paused = True

    def resume_reading(self) -> None:
        """Resume reading, in a new callback."""
        if self._paused and not self._closing:
            self._paused = False
            self._core.call_soon(self._read_inbox, context=self._context)

    def is_reading(self) -> bool:
        """Whether the protocol gets arriving data."""
        return not (self._closing or self._paused)

    # -- writing ----------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data; data that does not fit into the window is buffered."""
        _check_bytes(data)
        if self._eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._conn_lost:
            return
        if self._was_reset:
            # After the other side's end a kernel says EPIPE, before it ECONNRESET.
            number = errno.EPIPE if self._ended else errno.ECONNRESET
            self._force_close(_os_error(number))
            return
        # The caller may change the data after this call, so it is copied.
        self._outgoing.write(data if type(data) is bytes else bytes(data))
        if self._outgoing.backlog_bytes:
            self._maybe_pause_protocol()  # type: ignore[attr-defined]

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send all of it at once."""
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        """Return the number of buffered bytes."""
        return self._outgoing.backlog_bytes

    def can_write_eof(self) -> bool:
        """Return True."""
        return True

    def write_eof(self) -> None:
        """Send an end after the written data; reading goes on."""
        if self._closing or self._eof:
            return
        self._eof = True
        if not self._outgoing.backlog_bytes:
            self._outgoing.send_end()

    # -- the end ----------------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Use that protocol from now on."""
        self._protocol = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)
        if is_tls(protocol):
            self.pipe.opaque = self.peer.pipe.opaque = True

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def is_closing(self) -> bool:
        """Whether either side has closed the connection, or it has failed."""
        return self._closing

    def close(self) -> None:
        """Stop reading, send the written data, then close."""
        if not self._closing:
            self._closing = True
            if not self._outgoing.backlog_bytes:
                self._schedule_lost(None)

    def abort(self) -> None:
        """Close at once; buffered data is dropped."""
        self._force_close(None)

    def _fatal_error(self, error: BaseException, message: str) -> None:
        if not isinstance(error, OSError):
            self._core.loop.call_exception_handler(
                {"message": message, "exception": error, "transport": self, "protocol": self._protocol}
            )
        self._force_close(error)

    def _force_close(self, error: BaseException | None) -> None:
        if not self._conn_lost:
            self._outgoing.drop_backlog()
            self._closing = True
            self._schedule_lost(error)

    def _schedule_lost(self, error: BaseException | None) -> None:
        self._conn_lost += 1
        self._core.call_soon(self._call_connection_lost, error, context=self._context)

    def _call_connection_lost(self, error: BaseException | None) -> None:
        try:
            if self._protocol is not None:
                self._protocol.connection_lost(error)
        finally:
            self._close_socket()

    def _close_socket(self) -> None:
        self._gone = True
        if not self._was_reset:
            if any(self._inbox):
                self.pipe.send(self.peer.on_reset)
            else:
                self._outgoing.send_end()
        self._inbox.clear()
        if self._server is not None:
            self._server._detach(*((self,) if _ATTACH_TAKES_TRANSPORT else ()))
            self._server = None
        if self._owner is not None:
            self._owner.connections.pop(self, None)
        if self.on_gone is not None:
            self.on_gone()


def _buffer_of(protocol: asyncio.BufferedProtocol) -> memoryview:
    """Return the protocol's buffer for arriving data. Raises RuntimeError if it is empty."""
    buffer = memoryview(protocol.get_buffer(-1))
    if not buffer:
        raise RuntimeError("get_buffer() returned an empty buffer")
    return buffer


def _check_bytes(data: object) -> None:
    """Raise asyncio's TypeError for data that cannot be written."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        kind = type(data).__name__
        raise TypeError(f"data argument must be a bytes-like object, not {kind!r}")


def _os_error(number: int) -> OSError:
    """Return the operating system's error with that number."""
    return OSError(number, os.strerror(number))

"""One connection of a program: a Unix socket on its side, the virtual network on the other."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.runtime.virtual.loop import VirtualEventLoop
    from broker_sim.runtime.virtual.network.ports import BoundPort

READ_BYTES = 262_144
BACKLOG = 100
_ARRIVAL = struct.Struct("<III")


class Owner(Protocol):
    """The program that the connection belongs to."""

    def on_connected(self, number: int, error: int) -> None:
        """Receive the result of a connect, an errno or 0."""

    def next_number(self) -> int:
        """Return the number for an incoming connection."""

    def on_opened(self, number: int, connection: Connection) -> None:
        """Take over a connection."""

    def on_arrival(self) -> None:
        """Run soon: there is data to read, or room to write."""


class Connection(asyncio.Protocol):
    """Moves bytes between the two sides; used on the loop's thread only."""

    def __init__(
        self,
        owner: Owner,
        number: int,
        sock: socket.socket,
        filler_bytes: int = 0,
        on_made: Callable[[tuple[str, int]], None] | None = None,
    ) -> None:
        """`on_made(peer)` is called for an incoming connection."""
        sock.setblocking(False)
        self._owner = owner
        self._number = number
        self._sock = sock
        self._filler_bytes = filler_bytes
        self._on_made = on_made
        self._transport: asyncio.Transport | None = None
        self._outbox = bytearray()
        self._far_end_is_over = False
        self._near_end_is_over = False

    async def connect(self, loop: VirtualEventLoop, host: str, port: int) -> None:
        """Connect over the virtual network, and report the result to the program."""
        try:
            await loop.create_connection(lambda: self, host, port)
        except OSError as error:
            self._sock.close()
            self._owner.on_connected(self._number, error.errno or errno.ECONNREFUSED)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read the filler bytes, so that the program may write; close the connection of a program that has ended."""
        self._transport = cast("asyncio.Transport", transport)
        if self._on_made is not None:
            self._on_made(transport.get_extra_info("peername"))
        elif not self.is_closed:
            while self._filler_bytes:
                self._filler_bytes -= len(self._sock.recv(self._filler_bytes))
            self._owner.on_connected(self._number, 0)
        if self.is_closed:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Pass arriving data to the program."""
        self._outbox += data
        self.flush()
        self._owner.on_arrival()

    def eof_received(self) -> bool:
        """Pass the end of data to the program, which may still write."""
        self._far_end_is_over = True
        self.flush()
        self._owner.on_arrival()
        return True

    def connection_lost(self, error: BaseException | None) -> None:
        """Close the program's end after all data that has arrived."""
        del error
        self._transport = None
        self.flush()
        self._sock.close()
        self._owner.on_arrival()

    def fileno(self) -> int:
        """Return the descriptor of the program's end, -1 if that is closed."""
        return self._sock.fileno()

    @property
    def is_closed(self) -> bool:
        """Whether the program's end is closed."""
        return self.fileno() < 0

    @property
    def has_backlog(self) -> bool:
        """Whether bytes wait for the program to read."""
        return bool(self._outbox)

    def flush(self) -> None:
        """Write as much as the program has room for; the virtual network stops sending meanwhile."""
        if self.is_closed:
            return
        try:
            while self._outbox:
                del self._outbox[: self._sock.send(self._outbox, socket.MSG_NOSIGNAL)]
            if self._far_end_is_over:
                self._sock.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:
            self._outbox.clear()  # the program has closed its end
        transport: Any = self._transport
        if transport is not None and bool(self._outbox) == transport.is_reading():
            (transport.pause_reading if self._outbox else transport.resume_reading)()

    def drain(self) -> tuple[bool, bool]:
        """Send the program's data; return whether there was any, and whether the program has more to read now."""
        backlog = len(self._outbox)
        self.flush()
        has_sent, has_more = False, len(self._outbox) < backlog
        while self._transport is not None and not self._near_end_is_over:
            try:
                data = self._sock.recv(READ_BYTES)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            has_sent = True
            if data:
                self._transport.write(data)
            else:
                self._near_end_is_over = True
                self._transport.close()
        return has_sent, has_more

    def close(self) -> None:
        """Close the program's end after the program has ended."""
        self._sock.close()


class Server:
    """A port on which a program listens; the program gets each connection as a message with a socket."""

    def __init__(self, owner: Owner, sock: socket.socket, port: BoundPort) -> None:
        sock.setblocking(False)
        self._owner = owner
        self._sock = sock
        self._port = port
        self._is_started = False

    @property
    def port(self) -> int:
        """The port number."""
        return int(self._port.getsockname()[1])

    def start(self, loop: VirtualEventLoop) -> None:
        """Accept connections from now on. Idempotent."""
        if self._is_started:
            return
        self._is_started = True
        server = asyncio.Server(loop, [self._port], self._accept, None, BACKLOG, None, None)  # type: ignore[list-item]
        loop.tcp.start_serving(self._accept, self._port, server, None)

    def _accept(self) -> Connection:
        near, far = socket.socketpair()
        number = self._owner.next_number()

        def tell(peer: tuple[str, int]) -> None:
            (address,) = struct.unpack(">I", socket.inet_aton(peer[0]))
            with far:
                try:
                    socket.send_fds(self._sock, [_ARRIVAL.pack(number, peer[1], address)], [far.fileno()])
                except OSError:  # the queue is full or closed by the program: the connection ends
                    return
            self._owner.on_arrival()

        connection = Connection(self._owner, number, near, on_made=tell)
        self._owner.on_opened(number, connection)
        return connection

    def is_over(self) -> bool:
        """Whether the program has closed its end, which frees the port."""
        try:
            is_over = not self._sock.recv(1)
        except BlockingIOError:
            return False
        except OSError:
            is_over = True
        if is_over:
            self.close()
        return is_over

    def close(self) -> None:
        """Release the port."""
        self._port.close()
        self._sock.close()

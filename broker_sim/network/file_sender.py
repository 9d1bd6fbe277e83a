"""Sends responses with parts of files; mirrors `FileRecords.writeTo` and the sends of a `KafkaChannel`.

The operating system copies the bytes from the page cache to the socket (sendfile). The socket is the
transport's, under a separate descriptor, because a loop does not allow waiting for a transport's descriptor.
To keep bytes in order:

1. The transport's buffer goes first: until it is empty, nothing is sent here.
2. From then on everything is sent here, until the queue is empty; then the transport writes again.

One response may take many turns of the loop. Until then the connection's next request waits, as in Kafka.

The file may have been truncated since its size was sent to the client, by the broker or from outside. Then
the rest of the response cannot be sent, and the connection is closed, as in Kafka.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from typing import TYPE_CHECKING, Final

from broker_sim.protocol.file_view import FileView
from broker_sim.runtime.process import ProcessState
from broker_sim.runtime.system import Socket

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from broker_sim.protocol.message import Chunk
    from broker_sim.runtime.process import Process

MAX_BYTES_AT_ONCE: Final = 4 * 1024 * 1024
"""Number of bytes sent before other connections get their turn."""
NOT_FOR_THIS_FILE: Final = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}
"""Errors of a file system without sendfile."""
MORE_FOLLOWS: Final = getattr(socket, "MSG_MORE", 0)


class FileSender:
    """Sends chunks, parts of files among them, on one connection. Thread rule: only the loop's thread."""

    __slots__ = (
        "_is_draining",
        "_is_held",
        "_is_waiting",
        "_loop",
        "_on_done",
        "_on_failed",
        "_on_progress",
        "_process",
        "_queue",
        "_sent_bytes",
        "_socket",
        "_transport",
        "is_busy",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        process: Process,
        *,
        on_progress: Callable[[], object],
        on_done: Callable[[], object],
        on_failed: Callable[[str], object],
    ) -> None:
        """`on_failed(reason)` is called if the connection must end; an empty reason means that the client left."""
        self._transport = transport
        self._loop = loop
        self._process = process
        self._on_progress = on_progress
        self._on_done = on_done
        self._on_failed = on_failed
        self._queue: deque[Chunk] = deque()
        self._sent_bytes = 0
        """Number of bytes already sent of the first chunk in the queue."""
        self._socket: Socket | None = None
        self._is_draining = False
        """Whether the transport still has bytes, which go first."""
        self._is_waiting = False
        """Whether the loop will call back when the socket has room."""
        self._is_held = False
        self.is_busy = False
        """Whether the queue is not empty, so that later chunks must be queued too."""

    @staticmethod
    def can_send_on(transport: asyncio.BaseTransport) -> bool:
        """Return whether the transport is a plaintext socket, on a system with sendfile."""
        return (
            hasattr(os, "sendfile")
            and transport.get_extra_info("socket") is not None
            and transport.get_extra_info("sslcontext") is None
        )

    def send(self, chunks: Sequence[Chunk]) -> None:
        """Send the chunks after everything written before."""
        self._queue += chunks
        if self.is_busy:
            return
        self.is_busy = True
        if self._transport.get_write_buffer_size():
            self._is_draining = True
            # The transport now reports when it is empty, not only nearly empty.
            self._transport.set_write_buffer_limits(0)
        else:
            self._send()

    def transport_has_room(self) -> None:
        """Continue to send, because the transport has written all its bytes."""
        if self._is_draining and not self._transport.get_write_buffer_size():
            self._is_draining = False
            self._transport.set_write_buffer_limits()
            self._process.deliver(self._send)

    def hold(self) -> None:
        """Send nothing until `release`."""
        self._is_held = True
        self._stop_waiting()

    def release(self) -> None:
        """Continue to send."""
        self._is_held = False
        self._send()

    def abort(self) -> None:
        """Drop the queue, and close the descriptor: a connection ends with its last descriptor."""
        self._queue.clear()
        self._sent_bytes = 0
        self._is_draining = False
        self._stop_waiting()
        self.is_busy = False
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # -- inside ---------------------------------------------------------------------------------

    def _send(self) -> None:
        """Send until the socket is full or the queue is empty."""
        if not self.is_busy or self._is_held or self._is_draining:
            return
        left_bytes = MAX_BYTES_AT_ONCE
        try:
            if self._socket is None:
                descriptor = self._transport.get_extra_info("socket").fileno()
                self._socket = Socket(fileno=os.dup(descriptor))
            while self._queue:
                wanted_bytes = min(len(self._queue[0]) - self._sent_bytes, left_bytes)
                sent_bytes = self._send_part(self._socket, self._queue[0], wanted_bytes)
                left_bytes -= sent_bytes
                if sent_bytes < wanted_bytes or not left_bytes:
                    self._wait(self._socket)
                    return
        except (BlockingIOError, InterruptedError):
            assert self._socket is not None
            self._wait(self._socket)
        except EOFError as error:
            self._fail(str(error))
        except ConnectionError:
            self._fail("")
        except OSError as error:
            self._fail(f"a response could not be sent: {error.strerror}")
        else:
            self._stop_waiting()
            self.is_busy = False
            self._on_done()

    def _send_part(self, to: Socket, chunk: Chunk, max_bytes: int) -> int:
        """Send the next bytes of the first chunk in the queue; return the number of bytes sent.

        Raises EOFError if a file is shorter than its view, and OSError.
        """
        start = self._sent_bytes
        if isinstance(chunk, FileView):
            try:
                sent_bytes = os.sendfile(to.fileno(), chunk.descriptor, chunk.position + start, max_bytes)
            except OSError as error:
                if error.errno not in NOT_FOR_THIS_FILE:
                    raise
                rest = chunk.read(start)
                if len(rest) < len(chunk) - start:
                    raise _ends_too_early(chunk, len(rest)) from None
                self._queue[0], self._sent_bytes = rest, 0
                return self._send_part(to, rest, max_bytes)
            if not sent_bytes:
                raise _ends_too_early(chunk, start)
        else:
            flags = MORE_FOLLOWS if len(self._queue) > 1 else 0
            sent_bytes = to.send(memoryview(chunk)[start : start + max_bytes], flags)
        self._on_progress()
        if start + sent_bytes == len(chunk):
            self._queue.popleft()
            self._sent_bytes = 0
        else:
            self._sent_bytes = start + sent_bytes
        return sent_bytes

    def _wait(self, to: Socket) -> None:
        if not self._is_waiting:
            self._loop.add_writer(to.fileno(), self._on_writable)
            self._is_waiting = True

    def _stop_waiting(self) -> None:
        if self._is_waiting and self._socket is not None:
            self._loop.remove_writer(self._socket.fileno())
        self._is_waiting = False

    def _on_writable(self) -> None:
        if self._process.state is not ProcessState.RUNNING:
            # A stopped process sends nothing, but the loop would call back again and again.
            self._stop_waiting()
        self._process.deliver(self._send)

    def _fail(self, reason: str) -> None:
        self.abort()
        self._on_failed(reason)


def _ends_too_early(view: FileView, sent_bytes: int) -> EOFError:
    return EOFError(f"the file of a fetch ends {len(view) - sent_bytes} bytes before what was promised to the client")

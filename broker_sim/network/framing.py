"""Bytes in, frames out, without I/O; mirrors `org.apache.kafka.common.network.NetworkReceive`.

A frame is a length (four bytes, signed, big-endian) and that many bytes of request.

Bytes arrive in one of two ways, as in asyncio's protocols: `receive_data` takes bytes that were
read; `get_buffer` returns memory to read into, and `buffer_updated` has the number of bytes read. Small
frames are read together into a scratch buffer and copied out of it. A large frame gets its own
buffer once its length is known; the rest of it is read into that buffer without a copy.

Deliberate differences: Kafka allocates a frame when it has read the length. Here a frame above 2 MB
is read through the scratch buffer and uses memory as its bytes arrive, because a client may
announce it and never send it. Kafka accepts a frame of 0 bytes and then fails to parse a request;
here the length itself is an error. Both close the connection.
"""

from __future__ import annotations

import struct
from typing import Final

from broker_sim.protocol.errors import ProtocolError

LENGTH: Final = struct.Struct(">i")
LENGTH_BYTES: Final = 4
FIRST_SCRATCH_BYTES: Final = 2 * 1024
"""Initial size in bytes of a connection's read buffer; it grows when a read fills it, which is rare."""
SCRATCH_BYTES: Final = 32 * 1024
"""Frames up to this size, with their length, are read into the scratch buffer."""
MAX_PLACE_BYTES: Final = 2 * 1024 * 1024
"""Frames up to this size, with their length, are read into a buffer of their own."""
NOTHING: Final = memoryview(b"")


class Framer:
    """Splits the bytes of one connection into frames.

    Only the scratch buffer is reused, so a frame stays valid as long as it is referenced.
    """

    __slots__ = (
        "_data",
        "_is_ended",
        "_place",
        "_placed_bytes",
        "_scratch",
        "_start",
        "_tail",
        "_wanted_bytes",
        "buffered_bytes",
        "max_frame_bytes",
    )

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        """Maximum size of a frame in bytes; it may change between two frames."""
        self._data = NOTHING
        """Bytes that are split into frames, from `_start` on."""
        self._start = 0
        self._tail = bytearray()
        """Bytes received after `_data`."""
        self._wanted_bytes = LENGTH_BYTES
        """Number of bytes the next frame needs; before its length is known, that of the length field."""
        self._scratch: memoryview | None = None
        self._place: bytearray | None = None
        """The buffer of the large frame that is being read, including its length."""
        self._placed_bytes = 0
        self._is_ended = False
        self.buffered_bytes = 0
        """Number of bytes to be split into frames, without those in a large frame's buffer."""

    @property
    def held_bytes(self) -> int:
        """Number of bytes received that are not in a returned frame yet."""
        return self.buffered_bytes + self._placed_bytes

    def end(self) -> None:
        """Drop incomplete frames, because no more bytes will come."""
        self._is_ended = True
        self._place = self._scratch = None
        self._placed_bytes = 0
        if self.buffered_bytes < self._wanted_bytes:
            self.forget()

    def forget(self) -> None:
        """Drop everything; later bytes are ignored, and no frames are returned."""
        self._place = self._scratch = None
        self._placed_bytes = self.buffered_bytes = 0
        self._data = NOTHING
        self._tail = bytearray()

    def receive_data(self, data: bytes | bytearray) -> None:
        """Add received bytes: parts of frames, or several frames at once."""
        if self.buffered_bytes:
            self._tail += data
        else:
            self._data = memoryview(data)
            self._start = 0
        self.buffered_bytes += len(data)

    def get_buffer(self) -> memoryview:
        """Return memory to read into: the rest of a large frame's buffer, or the scratch buffer."""
        if self._place is None and SCRATCH_BYTES < self._wanted_bytes <= MAX_PLACE_BYTES:
            self._place = self._make_place()
        if self._place is not None:
            return memoryview(self._place)[self._placed_bytes :]
        if self._scratch is None:
            # Each connection has its own: on Windows a loop reads for several at the same time.
            self._scratch = memoryview(bytearray(FIRST_SCRATCH_BYTES))
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Add the first `nbytes` bytes of the memory that `get_buffer` returned."""
        place = self._place
        if place is None:
            scratch = self._scratch
            assert scratch is not None
            self.receive_data(bytes(scratch[:nbytes]))
            if nbytes == FIRST_SCRATCH_BYTES == len(scratch):
                self._scratch = memoryview(bytearray(SCRATCH_BYTES))
            return
        self._placed_bytes += nbytes
        if self._placed_bytes == len(place):
            self._place = None
            self._placed_bytes = 0
            self.receive_data(place)

    def next_frame(self) -> memoryview | None:
        """Return the next frame without its length, or None while it is not complete.

        Raises ProtocolError for a length that is not allowed, and again at every later call, because
        the start of the next frame is unknown.
        """
        if self.buffered_bytes < self._wanted_bytes:
            if self._is_ended:
                self.forget()
            return None
        if self._tail:
            self._join(self._wanted_bytes)
        size: int = LENGTH.unpack_from(self._data, self._start)[0]
        if not 0 < size <= self.max_frame_bytes:
            raise ProtocolError(f"frame of {size} bytes, allowed are 1 to {self.max_frame_bytes}")
        whole_bytes = LENGTH_BYTES + size
        if self.buffered_bytes < whole_bytes:
            self._wanted_bytes = whole_bytes
            if self._is_ended:
                self.forget()
            return None
        if self._tail:
            self._join(whole_bytes)
        end = self._start + whole_bytes
        frame = self._data[end - size : end]
        self._start = end
        self._wanted_bytes = LENGTH_BYTES
        self.buffered_bytes -= whole_bytes
        if not self.buffered_bytes:
            self._data = NOTHING
        return frame

    def _join(self, count: int) -> None:
        """Make the next `count` received bytes contiguous."""
        if len(self._data) - self._start < count:
            self._tail[:0] = self._data[self._start :]
            self._data = memoryview(self._tail)
            self._start = 0
            self._tail = bytearray()

    def _make_place(self) -> bytearray:
        """Return a buffer for the frame that has begun, with its bytes received so far."""
        self._join(self.buffered_bytes)
        place = bytearray(self._wanted_bytes)
        place[: self.buffered_bytes] = self._data[self._start :]
        self._placed_bytes = self.buffered_bytes
        self._data = NOTHING
        self._wanted_bytes = LENGTH_BYTES
        self.buffered_bytes = 0
        return place

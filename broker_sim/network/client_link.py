"""The network between one client and its broker: a connection's transport, which can be held.

While it is held nothing passes, and nothing is lost, as with TCP on a partitioned network: what the
broker sends waits here, and what the client sends is not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol.file_view import FileView

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from broker_sim.network.file_sender import FileSender
    from broker_sim.protocol.message import Chunk
    from broker_sim.runtime.read_turns import ReadTurns

SEND_BUFFER_BYTES = 100 * 1024
"""Number of bytes a held link buffers before it is full: Kafka's default for `socket.send.buffer.bytes`."""


class ClientLink:
    """Writes to a client and controls reading from it; does nothing once the client has disconnected."""

    __slots__ = (
        "_descriptor",
        "_files",
        "_held",
        "_held_bytes",
        "_is_closing",
        "_transport",
        "_transport_is_full",
        "_turns",
        "is_held",
        "is_reading",
        "reads_freely",
    )

    def __init__(self, turns: ReadTurns | None = None) -> None:
        """With `turns`, reading alternates with other connections until `end_turns`."""
        self._transport: asyncio.Transport | None = None
        self._transport_is_full = False
        self._turns = turns
        self._descriptor = -1
        """The socket's descriptor while the link reads in turns, otherwise -1."""
        self.is_reading = True
        """Whether the transport may read, perhaps only in its turn; see `set_reading`."""
        self.reads_freely = turns is None
        """Whether the transport keeps reading by itself: the link is not held, and does not take turns."""
        self._files: FileSender | None = None
        self._is_closing = False
        """Whether to close the transport once all files are sent."""
        self._held: list[Chunk] | None = None
        """Bytes that wait for the client; None while the link is not held."""
        self._held_bytes = 0
        self.is_held = False
        """Whether nothing passes; set only by `hold` and `release`."""

    def attach(self, transport: asyncio.Transport, files: FileSender | None = None) -> None:
        """Start using this transport; `files` can send parts of files on it."""
        self._transport = transport
        self._files = files

    def begin_turns(self) -> None:
        """Read in turns from now on, if the link has turns; before, loops let a transport read once."""
        if self._turns is not None and self._transport is not None:
            self._descriptor = self._transport.get_extra_info("socket").fileno()
            if self.is_reading:
                self._wait_for_turn(self._transport)

    def turn_came(self) -> None:
        """Read the bytes that have arrived."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def end_turns(self) -> None:
        """Read without turns from now on."""
        turns, self._turns = self._turns, None
        self.reads_freely = not self.is_held
        if turns is not None:
            turns.leave(self._descriptor, self)
            if self.is_reading:
                self.turn_came()

    def detach(self) -> None:
        """Drop the transport, because the client has disconnected."""
        if self._turns is not None:
            self._turns.leave(self._descriptor, self)
        self._transport = None
        if self._files is not None:
            self._files.abort()
            # It refers to the connection, which would be a cycle for the garbage collector.
            self._files = None

    # -- writing --------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether the send buffer is full, so that the client's next request must wait.

        Kafka handles a connection's next request once the previous response is in the send buffer.
        """
        files = self._files
        return self._transport_is_full or self._held_bytes >= SEND_BUFFER_BYTES or (files is not None and files.is_busy)

    @property
    def is_sending_files(self) -> bool:
        """Whether a response with parts of files is being sent."""
        return self._files is not None and self._files.is_busy

    @property
    def sends_files(self) -> bool:
        """Whether responses may contain parts of files."""
        return self._files is not None

    def set_transport_full(self, *, is_full: bool) -> None:
        """Record that the transport's buffer is full, or has room again."""
        self._transport_is_full = is_full
        if not is_full and self._files is not None:
            self._files.transport_has_room()

    def write(self, chunks: Sequence[Chunk]) -> None:
        """Send one response, now or when the link is released."""
        transport = self._transport
        if transport is None or self._is_closing or transport.is_closing():
            return
        if self._held is None:
            files = self._files
            if files is not None and (files.is_busy or (len(chunks) > 1 and _has_file(chunks))):
                files.send(chunks)
            else:
                transport.writelines(chunks)  # type: ignore[arg-type]  # bytes, without files
        else:
            self._held += chunks
            self._held_bytes += sum(map(len, chunks))

    # -- reading --------------------------------------------------------------------------------

    def set_reading(self, *, reads: bool) -> None:
        """Start or stop reading; a held link never reads."""
        transport = self._transport
        if reads == self.is_reading or self._held is not None or transport is None:
            return
        if transport.is_closing():
            return
        if not reads:
            self.stop_reading()
            return
        self.is_reading = True
        if self._turns is None:
            transport.resume_reading()
        else:
            self._wait_for_turn(transport)

    def stop_reading(self) -> None:
        """Stop reading, even if the transport kept reading despite an earlier pause."""
        self.is_reading = False
        if self._turns is not None:
            self._turns.leave(self._descriptor, self)
        if self._transport is not None:
            if not self._transport.is_reading():
                # asyncio before Python 3.11.4 reads from a transport that was paused in `connection_made`.
                self._transport.resume_reading()
            self._transport.pause_reading()

    def _wait_for_turn(self, transport: asyncio.Transport) -> None:
        if self._turns is not None and self._descriptor >= 0 and not transport.is_closing():
            transport.pause_reading()
            self._turns.wait(self._descriptor, self)

    # -- holding --------------------------------------------------------------------------------

    def hold(self) -> None:
        """Let nothing pass until `release`."""
        if self._held is None:
            self.set_reading(reads=False)
            self._held = []
            self.is_held = True
            self.reads_freely = False
            if self._files is not None:
                self._files.hold()

    def release(self) -> None:
        """Send the held bytes; reading continues with the next `set_reading`."""
        chunks, self._held = self._held, None
        self.is_held = False
        self.reads_freely = self._turns is None
        self._held_bytes = 0
        if self._files is not None:
            self._files.release()
        if chunks:
            self.write(chunks)

    # -- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the transport once it has sent everything written."""
        if self.is_sending_files:
            self._is_closing = True
        elif self._transport is not None:
            self._transport.close()

    def files_sent(self) -> None:
        """Close the transport once all files are sent, if its close waited for that."""
        if self._is_closing:
            self._is_closing = False
            self.close()

    def abort(self) -> None:
        """Close the transport at once."""
        if self._transport is not None:
            self._transport.abort()


def _has_file(chunks: Sequence[Chunk]) -> bool:
    """Return whether any chunk is part of a file; the first chunk never is, because it is the response's header."""
    return any(isinstance(chunk, FileView) for chunk in chunks)

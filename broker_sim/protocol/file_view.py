"""A part of a file in the place of its bytes; mirrors a slice of `FileRecords`.

A response may have it among its pieces: who sends it lets the operating system copy the bytes from the
file to the socket (`network.file_sender`), so the broker never has them in its own memory.

A file stays open as long as there is a view of it, also when it has been deleted or its log is closed
meanwhile. Nobody has to say when a response was sent, or was lost on the way: the last reference that goes
closes the file.
"""

from __future__ import annotations

import os

from broker_sim.runtime.system import close_descriptor


class OpenFile:
    """A descriptor of `open_descriptor`, closed when nobody refers to this object any more."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        close_descriptor(self.descriptor)


class FileView:
    """A range of bytes of an open file, read only when needed."""

    __slots__ = ("_file", "position", "size_bytes")

    def __init__(self, file: OpenFile, position: int, size_bytes: int) -> None:
        self._file = file
        self.position = position
        self.size_bytes = size_bytes

    def __len__(self) -> int:
        return self.size_bytes

    @property
    def descriptor(self) -> int:
        """The file's, for reading; valid as long as this view is."""
        return self._file.descriptor

    def read(self, start: int = 0) -> bytes:
        """Return the bytes from `start` on; fewer if the file has been cut. Raises OSError."""
        return os.pread(self.descriptor, self.size_bytes - start, self.position + start)

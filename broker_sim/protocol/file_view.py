"""A part of a file instead of its bytes; mirrors a slice of `FileRecords`.

It may be a piece of a response: the operating system then copies the bytes from the file to the socket
(`network.file_sender`), so they never enter the broker's memory.

A file stays open as long as there is a view of it, even if it is deleted or its log closed in the meantime.
Dropping the last reference closes the file, whether the response was sent or not.
"""

from __future__ import annotations

import os

from broker_sim.runtime.system import close_descriptor


class OpenFile:
    """A file descriptor, closed when the last reference to this object is dropped."""

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
        """The file's descriptor, for reading; valid as long as this view exists."""
        return self._file.descriptor

    def read(self, start: int = 0) -> bytes:
        """Return the bytes from `start` on; fewer if the file was truncated. Raises OSError."""
        return os.pread(self.descriptor, self.size_bytes - start, self.position + start)

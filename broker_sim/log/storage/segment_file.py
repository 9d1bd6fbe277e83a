"""The bytes of one `.log` file; mirrors `FileRecords`."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from broker_sim.log.storage.batch_scan import BatchDamagedError
    from broker_sim.log.storage.file_system import FileSystem, StoragePath
    from broker_sim.log.storage.guard import StorageGuard
    from broker_sim.log.storage.index_files import IndexMismatchError
    from broker_sim.protocol.file_view import FileView

CLOSED_AND_DAMAGED: Final = "closed-and-damaged"

COPY_BYTES: Final = 1024 * 1024
"""Number of bytes copied at once."""

VIEW_BYTES: Final = 64 * 1024
"""Smallest size of a view; smaller ranges are read, which is faster."""


class SegmentFile:
    """A file that is appended to, truncated, and read at any position.

    Every method raises KAFKA_STORAGE_ERROR if the file system fails; the log is offline then.
    """

    __slots__ = ("_guard", "files", "is_deleted", "path")

    def __init__(self, path: StoragePath, files: FileSystem, guard: StorageGuard) -> None:
        """`guard` is the log's guard, whose errors are raised here."""
        self.path = path
        self.files = files
        self.is_deleted = False
        """Whether the segment is deleted, so that its indexes can no longer be opened."""
        self._guard = guard

    def append(self, batch: bytes, position: int) -> None:
        """Write the batch at the end of the file, which is at `position`.

        The operating system has it when this returns, so a kill of the process does not lose it;
        `LogStorage.seal` flushes it to disk.
        """
        if self._guard.is_failed:
            self._guard.check()
        try:
            byte_count = self.files.write(self.path, batch, position)
            while byte_count < len(batch):
                rest = memoryview(batch)[byte_count:]
                byte_count += self.files.write(self.path, rest, position + byte_count)
        except OSError as error:
            self._cut(position)
            raise self._guard.failed(f"append to {self.path.name}", error) from error

    def _cut(self, size_bytes: int) -> None:
        """Shorten the file; if that fails, the next start shortens it."""
        try:
            self.files.truncate(self.path, size_bytes)
        except OSError:
            self.files.close(self.path)

    def truncate(self, size_bytes: int) -> None:
        """Shorten the file."""
        with self._guard.io(f"truncate {self.path.name}"):
            self.files.truncate(self.path, size_bytes)

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return `size_bytes` from the position on."""
        if self._guard.is_failed:
            self._guard.check()
        try:
            content = self.files.read(self.path, size_bytes, position)
        except FileNotFoundError as error:
            if self.is_deleted:
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"The segment {self.path} is deleted") from error
            raise self._guard.failed(f"read {self.path.name}", error) from error
        except OSError as error:
            raise self._guard.failed(f"read {self.path.name}", error) from error
        if len(content) < size_bytes:
            cut = OSError(errno.EIO, f"the file ends at {position + len(content)}, within its batches")
            raise self._guard.failed(f"read {self.path.name}", cut)
        return content

    def view(self, position: int, size_bytes: int) -> FileView | None:
        """Return a view of that range of the file, None if it must be read."""
        if size_bytes < VIEW_BYTES:
            return None
        if self._guard.is_failed:
            self._guard.check()
        try:
            return self.files.view(self.path, size_bytes, position)
        except OSError as error:
            raise self._guard.failed(f"read {self.path.name}", error) from error

    def deleted(self, path: StoragePath) -> None:
        """Record that the segment is deleted: its file is renamed, and will be removed.

        A read after that raises KAFKA_STORAGE_ERROR; the log stays online.
        """
        self.path = path
        self.is_deleted = True

    def io(self, action: str) -> AbstractContextManager[None]:
        """Return a context in which an OSError takes the log offline."""
        return self._guard.io(action)

    def damaged(self, damage: BatchDamagedError | IndexMismatchError) -> ApiError:
        """Take the log offline, until the file is repaired; return the error to raise."""
        with suppress(OSError):
            (self.path.parent / CLOSED_AND_DAMAGED).touch()
        return self._guard.failed(f"read {self.path.name}", OSError(errno.EIO, f"{self.path.name} {damage}"))


def copy_synced(files: FileSystem, source: StoragePath, target: StoragePath) -> None:
    """Copy a file with its modification time, and sync the copy. Raises OSError."""
    status = source.stat()
    positions = range(0, status.st_size, COPY_BYTES)
    chunks = (files.read(source, COPY_BYTES, position) for position in positions)
    write_synced(files, target, chunks, status.st_mtime_ns)


def write_synced(files: FileSystem, path: StoragePath, batches: Iterable[bytes], modified_ns: int) -> None:
    """Write a new file with that modification time, and sync it. Raises OSError."""
    position = 0
    files.create(path)
    for batch in batches:
        byte_count = 0
        while byte_count < len(batch):
            byte_count += files.write(path, memoryview(batch)[byte_count:], position + byte_count)
        position += byte_count
    files.sync(path)
    files.set_modified(path, modified_ns)
    files.close(path)

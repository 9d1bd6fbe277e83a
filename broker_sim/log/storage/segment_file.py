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

VIEW_BYTES: Final = 64 * 1024
"""What is smaller is read: the calls for a view would take longer."""


class SegmentFile:
    """A file that is appended to, cut, and read at any position.

    Everything raises KAFKA_STORAGE_ERROR where the file system refuses it; the log is offline then.
    """

    __slots__ = ("_guard", "files", "is_deleted", "path")

    def __init__(self, path: StoragePath, files: FileSystem, guard: StorageGuard) -> None:
        """`guard` is the log's: what it raises for a failed file is raised here."""
        self.path = path
        self.files = files
        self.is_deleted = False
        """Whether the segment is deleted: its indexes have no name any more."""
        self._guard = guard

    def append(self, batch: bytes, position: int) -> None:
        """Write the batch at the end of the file, which is at `position`.

        It is with the operating system when this returns, so a kill of the process does not lose it;
        `LogStorage.seal` brings it to the disk.
        """
        if self._guard.is_failed:
            self._guard.check()
        try:
            written = self.files.write(self.path, batch, position)
            while written < len(batch):
                rest = memoryview(batch)[written:]
                written += self.files.write(self.path, rest, position + written)
        except OSError as error:
            self._cut(position)
            raise self._guard.failed(f"append to {self.path.name}", error) from error

    def _cut(self, size_bytes: int) -> None:
        """Shorten the file; a part that stays would be cut by the next start."""
        try:
            self.files.truncate(self.path, size_bytes)
        except OSError:
            self.files.close(self.path)

    def truncate(self, size_bytes: int) -> None:
        """Shorten the file."""
        with self._guard.io(f"truncate {self.path.name}"):
            self.files.truncate(self.path, size_bytes)

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return so many bytes from there on."""
        if self._guard.is_failed:
            self._guard.check()
        try:
            found = self.files.read(self.path, size_bytes, position)
        except FileNotFoundError as error:
            if self.is_deleted:
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"The segment {self.path} is deleted") from error
            raise self._guard.failed(f"read {self.path.name}", error) from error
        except OSError as error:
            raise self._guard.failed(f"read {self.path.name}", error) from error
        if len(found) < size_bytes:
            cut = OSError(errno.EIO, f"it ends at {position + len(found)}, within its batches")
            raise self._guard.failed(f"read {self.path.name}", cut)
        return found

    def view(self, position: int, size_bytes: int) -> FileView | None:
        """Return so many bytes without reading them; None where they must be read."""
        if size_bytes < VIEW_BYTES:
            return None
        if self._guard.is_failed:
            self._guard.check()
        try:
            return self.files.view(self.path, size_bytes, position)
        except OSError as error:
            raise self._guard.failed(f"read {self.path.name}", error) from error

    def deleted(self, path: StoragePath) -> None:
        """Note that the segment is deleted: its file has another name, and will be removed.

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


def write_synced(files: FileSystem, path: StoragePath, batches: Iterable[bytes], modified_ns: int) -> None:
    """Write a new file, modified at that time, and bring it to the disk. Raises OSError."""
    position = 0
    files.create(path)
    for batch in batches:
        written = 0
        while written < len(batch):
            written += files.write(path, memoryview(batch)[written:], position + written)
        position += written
    files.sync(path)
    files.set_modified(path, modified_ns)
    files.close(path)

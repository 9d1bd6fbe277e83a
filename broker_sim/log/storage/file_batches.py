"""The batches of a segment in its `.log` file; mirrors `FileRecords`."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, overload

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from array import array

    from broker_sim.log.storage.file_system import FileSystem, StoragePath
    from broker_sim.log.storage.guard import StorageGuard

__all__ = ["FileBatches"]


class FileBatches:
    """A list of batches to the segment; any slice of it is read at once.

    A batch is with the operating system when `append` returns, so a kill of the process does not lose
    it; `LogStorage.seal` brings it to the disk.
    """

    __slots__ = ("_files", "_guard", "_is_deleted", "_positions", "path")

    def __init__(
        self, path: StoragePath, positions: array[int], files: FileSystem, guard: StorageGuard
    ) -> None:
        """`guard` is the log's: what it raises for a failed file is raised here."""
        self.path = path
        self._guard = guard
        self._positions = positions
        self._files = files
        self._is_deleted = False

    def __len__(self) -> int:
        return len(self._positions) - 1

    def append(self, batch: bytes, /) -> None:
        """Write the batch after the last one.

        Raises KAFKA_STORAGE_ERROR when the file system refuses it; the log is offline then.
        """
        if self._guard.is_failed:
            self._guard.check()
        positions = self._positions
        start = positions[-1] - positions[0]
        try:
            written = self._files.write(self.path, batch, start)
            while written < len(batch):
                rest = memoryview(batch)[written:]
                written += self._files.write(self.path, rest, start + written)
        except OSError as error:
            self._cut(start)
            raise self._guard.failed(f"append to {self.path.name}", error) from error

    def deleted(self, path: StoragePath) -> None:
        """Hear that the segment is deleted: its file has another name, and will be gone.

        Who reads on after that gets KAFKA_STORAGE_ERROR; nothing is wrong with the log.
        """
        self.path = path
        self._is_deleted = True

    def _cut(self, size_bytes: int) -> None:
        """Shorten the file; a part that stays would be cut by the next start."""
        try:
            self._files.truncate(self.path, size_bytes)
        except OSError:
            self._files.close(self.path)

    @overload
    def __getitem__(self, index: int, /) -> bytes: ...

    @overload
    def __getitem__(self, index: slice, /) -> list[bytes]: ...

    def __getitem__(self, index: int | slice, /) -> bytes | list[bytes]:
        if isinstance(index, int):
            if index < 0:
                index += len(self)
            return self._read(index, index + 1)
        first, last, _ = index.indices(len(self))
        return [self._read(first, last)] if first < last else []

    def _read(self, first: int, last: int) -> bytes:
        if self._guard.is_failed:
            self._guard.check()
        positions = self._positions
        size_bytes = positions[last] - positions[first]
        position = positions[first] - positions[0]
        try:
            found = self._files.read(self.path, size_bytes, position)
        except FileNotFoundError as error:
            if self._is_deleted:
                raise ApiError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"The segment {self.path} is deleted"
                ) from error
            raise self._guard.failed(f"read {self.path.name}", error) from error
        except OSError as error:
            raise self._guard.failed(f"read {self.path.name}", error) from error
        if len(found) < size_bytes:
            cut = OSError(errno.EIO, f"it ends at {position + len(found)}, within its batches")
            raise self._guard.failed(f"read {self.path.name}", cut)
        return found

    def __setitem__(self, index: int, batch: bytes, /) -> None:
        raise TypeError("batches in files are not replaced")

    def __delitem__(self, tail: slice, /) -> None:
        first, last, _ = tail.indices(len(self))
        if last != len(self):
            raise ValueError("only a tail of the batches can be deleted")
        positions = self._positions
        with self._guard.io(f"truncate {self.path.name}"):
            self._files.truncate(self.path, positions[first] - positions[0])

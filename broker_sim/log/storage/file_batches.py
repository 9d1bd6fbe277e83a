"""The batches of a segment in its `.log` file; mirrors `FileRecords`."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, overload

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.storage.batch_scan import SegmentContent, scan_batches
from broker_sim.log.storage.log_history import LogHistory

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from broker_sim.log.storage.file_system import FileSystem, StoragePath
    from broker_sim.log.storage.guard import StorageGuard
    from broker_sim.protocol.file_view import FileView

__all__ = ["FileBatches", "write_synced"]

VIEW_BYTES: Final = 64 * 1024
"""What is smaller is read: the calls for a view would take longer."""


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
        positions = self._positions
        return self.read(positions[first] - positions[0], positions[last] - positions[first])

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return so many bytes of the segment from there on. Raises KAFKA_STORAGE_ERROR."""
        if self._guard.is_failed:
            self._guard.check()
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

    def within(self, entry: int, start_offset: int, end_offset: int) -> SegmentContent:
        """Look at the batches of an entry that stands for several ones, with these offsets.

        Its only buffer has all of their bytes. Raises KAFKA_STORAGE_ERROR if it has other batches.
        """
        positions = self._positions
        data = self._read(entry, entry + 1)
        found = SegmentContent(start_offset, positions[entry])
        found.batches = [data]
        valid_bytes = scan_batches(data, found, LogHistory(), False, end_offset)
        if valid_bytes < len(data) or found.end_offset != end_offset:
            position = positions[entry] - positions[0] + valid_bytes
            text = f"it is damaged at byte {position}, offset {found.end_offset}"
            raise self._guard.failed(f"read {self.path.name}", OSError(errno.EIO, text))
        return found

    def view(self, position: int, size_bytes: int) -> FileView | None:
        """Return so many bytes of the segment without reading them; None where they must be read."""
        if size_bytes < VIEW_BYTES:
            return None
        if self._guard.is_failed:
            self._guard.check()
        try:
            return self._files.view(self.path, size_bytes, position)
        except OSError as error:
            raise self._guard.failed(f"read {self.path.name}", error) from error

    def __setitem__(self, index: int, batch: bytes, /) -> None:
        raise TypeError("batches in files are not replaced")

    def __delitem__(self, tail: slice, /) -> None:
        first, last, _ = tail.indices(len(self))
        if last != len(self):
            raise ValueError("only a tail of the batches can be deleted")
        positions = self._positions
        with self._guard.io(f"truncate {self.path.name}"):
            self._files.truncate(self.path, positions[first] - positions[0])


def write_synced(
    files: FileSystem, path: StoragePath, batches: Sequence[bytes], modified_ns: int
) -> None:
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

"""The batches of a segment in its `.log` file; mirrors `FileRecords`."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING, Final, overload

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.storage.batch_scan import SegmentContent, scan_segment
from broker_sim.log.storage.batch_walk import BatchDamagedError
from broker_sim.log.storage.log_history import LogHistory
from broker_sim.log.storage.sealed_batches import SealedBatches

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from broker_sim.log.storage.file_system import FileSystem, StoragePath
    from broker_sim.log.storage.guard import StorageGuard
    from broker_sim.protocol.file_view import FileView

__all__ = ["CLOSED_AND_DAMAGED", "FileBatches", "write_synced"]

CLOSED_AND_DAMAGED: Final = "closed-and-damaged"

VIEW_BYTES: Final = 64 * 1024
"""What is smaller is read: the calls for a view would take longer."""


class FileBatches:
    """A list of batches to the segment; any slice of it is read at once.

    A batch is with the operating system when `append` returns, so a kill of the process does not lose
    it; `LogStorage.seal` brings it to the disk.
    """

    __slots__ = ("_guard", "_positions", "_start_position", "files", "is_deleted", "path")

    def __init__(
        self,
        path: StoragePath,
        start_position: int,
        positions: array[int],
        files: FileSystem,
        guard: StorageGuard,
    ) -> None:
        """`positions` begin at `start_position` or, where the first batches are sealed, behind these.

        `guard` is the log's: what it raises for a failed file is raised here.
        """
        self.path = path
        self.files = files
        self.is_deleted = False
        """Whether the segment is deleted: its indexes have no name any more."""
        self._guard = guard
        self._start_position = start_position
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions) - 1

    def append(self, batch: bytes, /) -> None:
        """Write the batch after the last one.

        Raises KAFKA_STORAGE_ERROR when the file system refuses it; the log is offline then.
        """
        if self._guard.is_failed:
            self._guard.check()
        start = self._positions[-1] - self._start_position
        try:
            written = self.files.write(self.path, batch, start)
            while written < len(batch):
                rest = memoryview(batch)[written:]
                written += self.files.write(self.path, rest, start + written)
        except OSError as error:
            self._cut(start)
            raise self._guard.failed(f"append to {self.path.name}", error) from error

    def deleted(self, path: StoragePath) -> None:
        """Hear that the segment is deleted: its file has another name, and will be gone.

        Who reads on after that gets KAFKA_STORAGE_ERROR; nothing is wrong with the log.
        """
        self.path = path
        self.is_deleted = True

    def _cut(self, size_bytes: int) -> None:
        """Shorten the file; a part that stays would be cut by the next start."""
        try:
            self.files.truncate(self.path, size_bytes)
        except OSError:
            self.files.close(self.path)

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
        start = positions[first]
        return self.read(start - self._start_position, positions[last] - start)

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return so many bytes of the segment from there on. Raises KAFKA_STORAGE_ERROR."""
        if self._guard.is_failed:
            self._guard.check()
        try:
            found = self.files.read(self.path, size_bytes, position)
        except FileNotFoundError as error:
            if self.is_deleted:
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

    def io(self, action: str) -> AbstractContextManager[None]:
        """Return a context in which an OSError takes the log offline."""
        return self._guard.io(action)

    def damaged(self, damage: Exception) -> ApiError:
        """Take the log offline, until the file is repaired; return the error to raise."""
        with suppress(OSError):
            (self.path.parent / CLOSED_AND_DAMAGED).touch()
        return self._guard.failed(
            f"read {self.path.name}", OSError(errno.EIO, f"{self.path.name} {damage}")
        )

    def sealed(
        self, base_offset: int, end_offset: int, size_bytes: int, max_timestamp: int
    ) -> SealedBatches:
        """Return the batches up to there, which have their indexes beside them."""
        return SealedBatches(self, base_offset, end_offset, size_bytes, max_timestamp)

    def load(self, base_offset: int, size_bytes: int, end_offset: int) -> SegmentContent:
        """Look at the batches up to there. Raises KAFKA_STORAGE_ERROR if there are other ones."""
        content = SegmentContent(base_offset, self._start_position)
        with self._guard.io(f"read {self.path.name}"):
            valid_bytes = scan_segment(
                self.path,
                self.files,
                content,
                LogHistory(),
                verify=False,
                upper_bound_offset=end_offset,
                at_most_bytes=size_bytes,
            )
        if (valid_bytes, content.end_offset) != (size_bytes, end_offset):
            raise self.damaged(BatchDamagedError(valid_bytes, content.end_offset))
        return content

    def view(self, position: int, size_bytes: int) -> FileView | None:
        """Return so many bytes of the segment without reading them; None where they must be read."""
        if size_bytes < VIEW_BYTES:
            return None
        if self._guard.is_failed:
            self._guard.check()
        try:
            return self.files.view(self.path, size_bytes, position)
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
            self.files.truncate(self.path, positions[first] - self._start_position)


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

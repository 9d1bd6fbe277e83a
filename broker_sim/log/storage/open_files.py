"""The open files of a broker's logs and the maps of their indexes, as many as the process can spare."""

from __future__ import annotations

import mmap
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_sim.log.storage.file_system import DiskSpace
from broker_sim.protocol.file_view import FileView, OpenFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.log.storage.file_system import StoragePath

MOST_FILES: Final = 1_024
SHARE_OF_LIMIT: Final = 8
"""An eighth of what the process may open goes to the files of one broker; sockets need the rest.

Half as many maps are kept: each has a descriptor of its own, by which it is seen whether the file has been cut.
"""


class OpenFiles:
    """Descriptors and maps by path.

    When there are too many, the descriptor that was opened first is closed, or the map that was not used for longest.
    """

    __slots__ = ("_maps", "_most", "_most_maps", "_opened")

    def __init__(self, most: int | None = None) -> None:
        if most is None:
            import resource  # noqa: PLC0415 - only for data on disk: Windows does not have it

            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            most = MOST_FILES if soft < 0 else max(8, min(MOST_FILES, soft // SHARE_OF_LIMIT))
        self._most = most
        self._most_maps = max(2, most // 2)
        self._opened: dict[StoragePath, OpenFile] = {}
        self._maps: dict[StoragePath, mmap.mmap] = {}

    def space(self, directory: StoragePath) -> DiskSpace:
        """Return the size of the disk that the directory is on. Raises OSError."""
        usage = shutil.disk_usage(str(directory))
        return DiskSpace(usage.total, usage.free)

    def descriptor(self, path: StoragePath) -> int:
        """Return a descriptor to read and write the file. It holds until the next call. Raises OSError."""
        return self._open(path).descriptor

    def _open(self, path: StoragePath) -> OpenFile:
        found = self._opened.get(path)
        if found is not None:
            return found
        while len(self._opened) >= self._most:
            self.close(next(iter(self._opened)))
        opened = self._opened[path] = OpenFile(os.open(str(path), os.O_RDWR))
        return opened

    def read(self, path: StoragePath, size_bytes: int, position: int) -> bytes:
        """Return so many bytes from there on, fewer where the file ends. Raises OSError."""
        return os.pread(self.descriptor(path), size_bytes, position)

    def view(self, path: StoragePath, size_bytes: int, position: int) -> FileView | None:
        """Return so many bytes from there on without reading them, None where the file ends before.

        The view keeps the file open, whatever is closed here. Raises OSError.
        """
        file = self._open(path)
        if os.fstat(file.descriptor).st_size < position + size_bytes:
            return None
        return FileView(file, position, size_bytes)

    def write(self, path: StoragePath, data: bytes | memoryview, position: int) -> int:
        """Write as much as there is room for, and return how much. Raises OSError."""
        return os.pwrite(self.descriptor(path), data, position)

    def create(self, path: StoragePath) -> None:
        """Create the file, or make it empty. Raises OSError.

        It does not stay open: many a new log waits long for its first record.
        """
        found = self._opened.get(path)
        if found is not None:
            os.ftruncate(found.descriptor, 0)
            return
        os.close(os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644))

    def truncate(self, path: StoragePath, size_bytes: int) -> None:
        """Cut the file. Raises OSError."""
        os.ftruncate(self.descriptor(path), size_bytes)

    def sync(self, path: StoragePath) -> None:
        """Bring the file to the disk (fsync). Raises OSError."""
        os.fsync(self.descriptor(path))

    def set_modified(self, path: StoragePath, modified_ns: int) -> None:
        """Set the time of the file's last change. Raises OSError."""
        os.utime(self.descriptor(path), ns=(modified_ns, modified_ns))

    @contextmanager
    def mapped(self, path: StoragePath) -> Iterator[mmap.mmap]:
        """Map a file that is not empty into memory. Raises OSError."""
        with Path(str(path)).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content

    def map(self, path: StoragePath) -> mmap.mmap | bytes:
        """Return the content of a file that is not changed while it has this name, without reading it.

        It holds until the next call. A file that is cut all the same is mapped anew: to read behind its end would
        end the process. Raises OSError.
        """
        found = self._maps.pop(path, None)
        if found is not None and found.size() != len(found):
            found.close()
            found = None
        if found is None:
            while len(self._maps) >= self._most_maps:
                self._unmap(next(iter(self._maps)))
            with Path(str(path)).open("rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    return b""
                found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps[path] = found
        return found

    def _unmap(self, path: StoragePath) -> None:
        found = self._maps.pop(path, None)
        if found is not None:
            found.close()

    def remove_tree(self, directory: StoragePath) -> None:
        """Remove the directory with all that is in it. Raises OSError."""
        shutil.rmtree(str(directory))

    def renamed(self, path: StoragePath, new_path: StoragePath) -> None:
        """Hear that the file has a new name; it stays open, but not mapped."""
        self._unmap(path)
        opened = self._opened.pop(path, None)
        if opened is not None:
            self._opened[new_path] = opened

    def close(self, path: StoragePath) -> None:
        """Close the file if it is open, or let the last view of it close it."""
        self._unmap(path)
        self._opened.pop(path, None)

    def close_in(self, directory: StoragePath) -> None:
        """Close every file in the directory."""
        for path in [*self._opened, *self._maps]:
            if path.parent == directory:
                self.close(path)

    def close_all(self) -> None:
        """Close every file."""
        for path in list(self._maps):
            self._unmap(path)
        self._opened.clear()

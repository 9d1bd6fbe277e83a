"""The open files of a broker's logs and the memory maps of their indexes, within the descriptor limit."""

from __future__ import annotations

import mmap
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_sim.log.storage.file_system import DiskSpace
from broker_sim.protocol.file_view import FileView, OpenFile
from broker_sim.runtime.system import open_descriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.log.storage.file_system import StoragePath

MAX_FILES: Final = 1_024
SHARE_OF_LIMIT: Final = 8
"""Divisor of the process's limit of open files; the quotient is for one broker, sockets need the rest.

At most half as many maps are open: each has its own descriptor, which shows whether the file was truncated.
"""


class OpenFiles:
    """Descriptors and maps by path.

    Beyond the limit, the descriptor opened first or the least recently used map is closed.
    """

    __slots__ = ("_maps", "_most", "_most_maps", "_opened")

    def __init__(self, most: int | None = None) -> None:
        if most is None:
            import resource  # noqa: PLC0415 - only for data on disk: Windows does not have it

            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            most = MAX_FILES if soft < 0 else max(8, min(MAX_FILES, soft // SHARE_OF_LIMIT))
        self._most = most
        self._most_maps = max(2, most // 2)
        self._opened: dict[StoragePath, OpenFile] = {}
        self._maps: dict[StoragePath, mmap.mmap] = {}

    def space(self, directory: StoragePath) -> DiskSpace:
        """Return the size of the disk that the directory is on. Raises OSError."""
        import shutil  # noqa: PLC0415 - a start without data on disk does not need it

        usage = shutil.disk_usage(str(directory))
        return DiskSpace(usage.total, usage.free)

    def descriptor(self, path: StoragePath) -> int:
        """Return a descriptor for reading and writing the file, valid until the next call. Raises OSError."""
        return self._open(path).descriptor

    def _open(self, path: StoragePath) -> OpenFile:
        file = self._opened.get(path)
        if file is not None:
            return file
        while len(self._opened) >= self._most:
            self.close(next(iter(self._opened)))
        opened = self._opened[path] = OpenFile(open_descriptor(str(path), os.O_RDWR))
        return opened

    def read(self, path: StoragePath, size_bytes: int, position: int) -> bytes:
        """Return `size_bytes` from the position on, fewer at the file's end. Raises OSError."""
        return os.pread(self.descriptor(path), size_bytes, position)

    def view(self, path: StoragePath, size_bytes: int, position: int) -> FileView | None:
        """Return a view of that range without reading it, None if the file ends before.

        The view keeps the file open, whatever is closed here. Raises OSError.
        """
        file = self._open(path)
        if os.fstat(file.descriptor).st_size < position + size_bytes:
            return None
        return FileView(file, position, size_bytes)

    def write(self, path: StoragePath, data: bytes | memoryview, position: int) -> int:
        """Write as much as there is room for; return the number of bytes written. Raises OSError."""
        return os.pwrite(self.descriptor(path), data, position)

    def create(self, path: StoragePath) -> None:
        """Create the file, or make it empty. Raises OSError.

        It is closed again, because many new logs get their first record much later.
        """
        file = self._opened.get(path)
        if file is not None:
            os.ftruncate(file.descriptor, 0)
            return
        os.close(os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644))

    def truncate(self, path: StoragePath, size_bytes: int) -> None:
        """Set the size of the file. Raises OSError."""
        os.ftruncate(self.descriptor(path), size_bytes)

    def sync(self, path: StoragePath) -> None:
        """Flush the file to disk (fsync). Raises OSError."""
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
        """Return the mapped content of a file that does not change while it has this name.

        It is valid until the next call. If the file was truncated nevertheless, it is mapped again, because a read
        beyond its end would crash the process. Raises OSError.
        """
        content = self._maps.pop(path, None)
        if content is not None and content.size() != len(content):
            content.close()
            content = None
        if content is None:
            while len(self._maps) >= self._most_maps:
                self._unmap(next(iter(self._maps)))
            with Path(str(path)).open("rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    return b""
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps[path] = content
        return content

    def _unmap(self, path: StoragePath) -> None:
        content = self._maps.pop(path, None)
        if content is not None:
            content.close()

    def remove_tree(self, directory: StoragePath) -> None:
        """Remove the directory with its content. Raises OSError."""
        import shutil  # noqa: PLC0415 - as above

        shutil.rmtree(str(directory))

    def renamed(self, path: StoragePath, new_path: StoragePath) -> None:
        """Record that the file has a new name; it stays open, but not mapped."""
        self._unmap(path)
        opened = self._opened.pop(path, None)
        if opened is not None:
            self._opened[new_path] = opened

    def close(self, path: StoragePath) -> None:
        """Close the file if it is open; with views, the last of them closes it."""
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

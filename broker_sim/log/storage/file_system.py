"""The file system of the logs: the machine's, or a simulated disk.

    StoragePath    the path of a file, with methods of `pathlib.Path`   Path         SimulatedPath
    FileSystem     reads and writes the bytes of files                  OpenFiles    SimulatedDisk

Everything above is the same for both: formats, recovery, checkpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from broker_sim.protocol.file_view import FileView

    MappedFile: TypeAlias = mmap.mmap | bytearray | bytes

NO_BOUND: Final = -1
"""The size of a disk without a bound."""

NS_PER_MS: Final = 1_000_000


class FileStatus(Protocol):
    """Size and time of a file."""

    @property
    def st_size(self) -> int:
        """The size in bytes."""

    @property
    def st_mtime_ns(self) -> int:
        """The time of the last change, in nanoseconds since 1970."""


class StoragePath(Protocol):
    """The part of `pathlib.Path` that the logs use. Raises OSError as `Path` does."""

    @property
    def name(self) -> str:
        """The last part of the path."""

    @property
    def stem(self) -> str:
        """The name without its last suffix."""

    @property
    def parent(self) -> Self:
        """The directory."""

    def with_name(self, name: str, /) -> Self:
        """Return the path of another file of the directory."""

    def with_suffix(self, suffix: str, /) -> Self:
        """Return the path with another last suffix."""

    def __truediv__(self, name: str, /) -> Self: ...

    def exists(self) -> bool:
        """Return whether there is such a file or directory."""

    def stat(self) -> FileStatus:
        """Return size and time."""

    def read_bytes(self) -> bytes:
        """Return the whole content."""

    def read_text(self, encoding: str, errors: str = ...) -> str:
        """Return the whole content as text."""

    def write_bytes(self, data: bytes, /) -> int:
        """Replace the whole content."""

    def touch(self) -> None:
        """Create an empty file if there is none."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""

    def rename(self, target: Self, /) -> Self:
        """Rename the file or directory."""

    def replace(self, target: Self, /) -> Self:
        """Rename the file, replacing another one atomically."""

    def mkdir(self, *, parents: bool = ..., exist_ok: bool = ...) -> None:
        """Create the directory."""

    def iterdir(self) -> Iterator[Self]:
        """Yield the paths in the directory."""

    def glob(self, pattern: str, /) -> Iterator[Self]:
        """Yield the paths in the directory that match the pattern."""


class DiskSpace(NamedTuple):
    """The size of a disk and its free space, in bytes; `NO_BOUND` without a bound."""

    total_bytes: int
    usable_bytes: int


class FileSystem(Protocol):
    """Reads and writes parts of files. Raises OSError."""

    def space(self, directory: StoragePath) -> DiskSpace:
        """Return the size of the disk that the directory is on."""

    def read(self, path: StoragePath, size_bytes: int, position: int) -> bytes:
        """Return `size_bytes` from the position on, fewer at the end of the file."""

    def view(self, path: StoragePath, size_bytes: int, position: int) -> FileView | None:
        """Return a view of that range without reading it; None if it must be read."""

    def write(self, path: StoragePath, data: bytes | memoryview, position: int) -> int:
        """Write as much of the data as there is room for; return the number of bytes written."""

    def create(self, path: StoragePath) -> None:
        """Create the file, or make it empty."""

    def truncate(self, path: StoragePath, size_bytes: int) -> None:
        """Set the size of the file."""

    def sync(self, path: StoragePath) -> None:
        """Flush the file and its name to disk (fsync)."""

    def set_modified(self, path: StoragePath, modified_ns: int) -> None:
        """Set the time of the file's last change."""

    def mapped(self, path: StoragePath) -> AbstractContextManager[mmap.mmap | bytes]:
        """Return the content of a file that is not empty, for a `with` block."""

    def map(self, path: StoragePath) -> MappedFile:
        """Return the mapped content of a file that does not change while it has this name.

        It is valid until the next call.
        """

    def remove_tree(self, directory: StoragePath) -> None:
        """Remove the directory with its content."""

    def renamed(self, path: StoragePath, new_path: StoragePath) -> None:
        """Record that the file has a new name."""

    def close(self, path: StoragePath) -> None:
        """Close the file if it is open."""

    def close_in(self, directory: StoragePath) -> None:
        """Close every file of the directory."""

    def close_all(self) -> None:
        """Close every file."""


def ending_with(files: Iterable[StoragePath], suffix: str) -> list[StoragePath]:
    """Return the files whose names end with the suffix."""
    return [path for path in files if path.name.endswith(suffix)]

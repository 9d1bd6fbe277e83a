"""A disk in memory for virtual time, with a page cache that a power loss empties.

    write, truncate, rename, unlink    change the page cache, which processes see at once
    sync                               flushes a file and the journal to the disk
    lose_power                         keeps the content of the disk, and a random part of the rest

It follows ext4 with its defaults (ordered data, delayed allocation). Names and sizes are changed through
a journal, in order: a prefix of the unsynced changes survives a power loss. Their bytes need not survive,
so a file that was renamed without a sync may be empty. Bytes survive only if all earlier journal changes do.

With `fsync_lies` a sync reports success and does nothing. A killed process loses nothing: the page cache
belongs to the machine.
"""

from __future__ import annotations

import errno
import os
import random
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.log.storage.file_system import NO_BOUND, DiskSpace
from broker_sim.log.storage.simulated_file import SimulatedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.log.storage.file_system import StoragePath

ROOT: Final = "/"
_Names = dict[str, "SimulatedFile | None"]


class DiskOptions(NamedTuple):
    """Options of a simulated disk.

    `capacity_bytes` is its size, None for no bound. `sync_ms` is the range of a sync's duration. With
    `fsync_lies` a sync flushes nothing.
    """

    capacity_bytes: int | None = None
    sync_ms: tuple[int, int] = (0, 0)
    fsync_lies: bool = False


class _NameChange(NamedTuple):
    """An entry of the journal: a name gets a file (None: a directory) or a new name, or is removed."""

    name: str
    file: SimulatedFile | None = None
    new_name: str | None = None
    is_gone: bool = False

    def apply(self, names: _Names) -> None:
        """Change the names."""
        if self.new_name is not None:
            inside = f"{self.name}/"
            moved = [each for each in names if each == self.name or each.startswith(inside)]
            for each in moved:
                names[self.new_name + each[len(self.name) :]] = names.pop(each)
        elif self.is_gone:
            names.pop(self.name, None)
        else:
            names[self.name] = self.file


class SimulatedDisk:
    """The disk of one broker; a `FileSystem`. Raises OSError as the machine's does.

    Single-threaded. `capacity_bytes`, `fsync_lies` and `is_read_only` may be changed at any time. All random
    choices follow from the seed.
    """

    def __init__(
        self,
        seed: str,
        options: DiskOptions | None = None,
        *,
        now_ms: Callable[[], int] = lambda: 0,
        on_wait: Callable[[int], object] = lambda _duration_ms: None,
    ) -> None:
        """`now_ms` returns the times of files; `on_wait(ms)` is called with the duration of each sync."""
        options = options or DiskOptions()
        self.capacity_bytes = options.capacity_bytes
        self.fsync_lies = options.fsync_lies
        self.is_read_only = False
        """Whether every change is refused with EROFS, as after an error that made it read-only."""
        self._sync_ms = options.sync_ms
        self._random = random.Random(seed)
        self._now_ms = now_ms
        self._on_wait = on_wait
        self._names: _Names = {ROOT: None}
        self._stored_names: _Names = dict(self._names)
        self._journal: list[_NameChange | None] = []
        """Changes since the last commit; None for the size of a file."""
        self._committed = 0
        """The number of changes committed earlier."""

    @property
    def root(self) -> SimulatedPath:
        """The directory that holds all others."""
        return SimulatedPath(self, PurePosixPath(ROOT))

    @property
    def used_bytes(self) -> int:
        """The bytes of all files."""
        return sum(len(file.content) for file in self._names.values() if file is not None)

    def space(self, directory: StoragePath) -> DiskSpace:  # noqa: ARG002 - all are on this disk
        """Return the size of the disk."""
        if self.capacity_bytes is None:
            return DiskSpace(NO_BOUND, NO_BOUND)
        return DiskSpace(self.capacity_bytes, max(0, self.capacity_bytes - self.used_bytes))

    def sync_all(self) -> None:
        """Flush everything to the disk, even with `fsync_lies`; takes no time."""
        self._commit()
        for file in self._names.values():
            if file is not None:
                file.flush()

    def lose_power(self) -> None:
        """Keep the content of the disk and a random prefix of the journal."""
        survivors = self._random.randint(0, len(self._journal))
        for change in self._journal[:survivors]:
            if change is not None:
                change.apply(self._stored_names)
        for file in self._stored_names.values():
            if file is not None:
                file.lose_power(self._committed + survivors, self._random)
        self._names = dict(self._stored_names)
        self._committed += len(self._journal)
        self._journal.clear()

    # -- bytes: a FileSystem --------------------------------------------------------------------

    def read(self, path: StoragePath, size_bytes: int, position: int) -> bytes:
        """Return `size_bytes` from the position on, fewer at the file's end."""
        return bytes(self.file(str(path)).content[position : position + size_bytes])

    def view(self, path: StoragePath, size_bytes: int, position: int) -> None:
        """Return None: there is no descriptor from which a socket could send."""

    def write(self, path: StoragePath, data: bytes | memoryview, position: int) -> int:
        """Write as much as there is room for. Raises ENOSPC if there is none."""
        file = self._file_to_change(path)
        if self.capacity_bytes is not None:
            room = self.capacity_bytes - self.used_bytes + max(0, len(file.content) - position)
            if room <= 0 < len(data):
                raise _error(errno.ENOSPC, str(path))
            data = data[:room]
        file.write(position, data, self._metadata_changes)
        file.modified_ns = self._now_ns()
        return len(data)

    def create(self, path: StoragePath) -> None:
        """Create the file, or make it empty."""
        if not self.exists(str(path)):
            self._create(str(path), SimulatedFile(self._now_ns()))
        self.truncate(path, 0)

    def truncate(self, path: StoragePath, size_bytes: int) -> None:
        """Cut the file."""
        file = self._file_to_change(path)
        if len(file.content) != size_bytes:
            self._journal.append(None)
            file.truncate(size_bytes, self._metadata_changes)
            file.modified_ns = self._now_ns()

    def sync(self, path: StoragePath) -> None:
        """Flush the file and the whole journal to the disk, unless the disk lies."""
        file = self.file(str(path))
        if not self.fsync_lies:
            self._commit()
            file.flush()
        duration_ms = self._random.randint(*self._sync_ms)
        if duration_ms:
            self._on_wait(duration_ms)

    def set_modified(self, path: StoragePath, modified_ns: int) -> None:
        """Set the time of the file's last change."""
        self._file_to_change(path).modified_ns = modified_ns

    @contextmanager
    def mapped(self, path: StoragePath) -> Iterator[bytes]:
        """Return the current content of the file."""
        yield bytes(self.file(str(path)).content)

    def map(self, path: StoragePath) -> bytearray:
        """Return the bytes of the file; for reading only."""
        return self.file(str(path)).content

    def remove_tree(self, directory: StoragePath) -> None:
        """Remove the directory with its content. Raises ENOENT."""
        if not self.exists(str(directory)):
            raise _error(errno.ENOENT, str(directory))
        inside = f"{directory}/"
        for name in [each for each in self._names if each.startswith(inside)]:
            self._change(_NameChange(name, is_gone=True))
        self._change(_NameChange(str(directory), is_gone=True))

    def renamed(self, path: StoragePath, new_path: StoragePath) -> None:
        """Do nothing, as `close`."""

    def close(self, path: StoragePath) -> None:
        """Do nothing: no file is held open."""

    def close_in(self, directory: StoragePath) -> None:
        """Do nothing, as `close`."""

    def close_all(self) -> None:
        """Do nothing, as `close`."""

    # -- names: for SimulatedPath ---------------------------------------------------------------

    def exists(self, name: str) -> bool:
        """Return whether there is such a file or directory."""
        return name in self._names

    def file(self, name: str) -> SimulatedFile:
        """Return the file of that name; raises ENOENT or EISDIR."""
        file = self._names.get(name)
        if file is None:
            raise _error(errno.EISDIR if name in self._names else errno.ENOENT, name)
        return file

    def unlink(self, name: str) -> None:
        """Remove a file; raises ENOENT or EISDIR."""
        self.file(name)
        self._change(_NameChange(name, is_gone=True))

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file or directory; a file of the new name is replaced."""
        if name not in self._names:
            raise _error(errno.ENOENT, name)
        if self._names[name] is None and any(self.names_in(new_name)):
            raise _error(errno.ENOTEMPTY, new_name)
        self._change(_NameChange(name, new_name=new_name))

    def mkdir(self, name: str) -> None:
        """Create a directory; raises EEXIST, and ENOENT without its parent."""
        if name in self._names:
            raise _error(errno.EEXIST, name)
        self._create(name, None)

    def names_in(self, directory: str) -> list[str]:
        """Return the names of files and directories in the directory, in order."""
        inside = directory.rstrip("/") + "/"
        rests = (each[len(inside) :] for each in self._names if each.startswith(inside))
        return sorted(rest for rest in rests if rest and "/" not in rest)

    # -- inside ---------------------------------------------------------------------------------

    @property
    def _metadata_changes(self) -> int:
        return self._committed + len(self._journal)

    def _now_ns(self) -> int:
        return self._now_ms() * 1_000_000

    def _commit(self) -> None:
        for change in self._journal:
            if change is not None:
                change.apply(self._stored_names)
        self._committed = self._metadata_changes
        self._journal.clear()

    def _create(self, name: str, file: SimulatedFile | None) -> None:
        parent = str(PurePosixPath(name).parent)
        if parent not in self._names:
            raise _error(errno.ENOENT, name)
        if self._names[parent] is not None:
            raise _error(errno.ENOTDIR, name)
        self._change(_NameChange(name, file))

    def _file_to_change(self, path: StoragePath) -> SimulatedFile:
        file = self.file(str(path))
        self._check_writable(str(path))
        return file

    def _check_writable(self, name: str) -> None:
        if self.is_read_only:
            raise _error(errno.EROFS, name)

    def _change(self, change: _NameChange) -> None:
        self._check_writable(change.name)
        change.apply(self._names)
        self._journal.append(change)


def _error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)


class SimulatedStatus(NamedTuple):
    """Size and time of a file."""

    st_size: int
    st_mtime_ns: int


class SimulatedPath:
    """The path of a file on a simulated disk, a `StoragePath`; equal for the same file of the same disk."""

    __slots__ = ("_disk", "_pure")

    def __init__(self, disk: SimulatedDisk, pure: PurePosixPath) -> None:
        self._disk = disk
        self._pure = pure

    def __str__(self) -> str:
        return str(self._pure)

    def __repr__(self) -> str:
        return f"SimulatedPath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimulatedPath) and self._disk is other._disk and self._pure == other._pure

    def __hash__(self) -> int:
        return hash(self._pure)

    # -- names ----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._pure.name

    @property
    def stem(self) -> str:
        """The name without its last suffix."""
        return self._pure.stem

    @property
    def parent(self) -> SimulatedPath:
        """The directory."""
        return SimulatedPath(self._disk, self._pure.parent)

    def with_name(self, name: str, /) -> SimulatedPath:
        """Return the path of another file of the directory."""
        return SimulatedPath(self._disk, self._pure.with_name(name))

    def with_suffix(self, suffix: str, /) -> SimulatedPath:
        """Return the path with another last suffix."""
        return SimulatedPath(self._disk, self._pure.with_suffix(suffix))

    def __truediv__(self, name: str, /) -> SimulatedPath:
        return SimulatedPath(self._disk, self._pure / name)

    # -- files ----------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return whether there is such a file or directory."""
        return self._disk.exists(str(self))

    def stat(self) -> SimulatedStatus:
        """Return size and time."""
        file = self._disk.file(str(self))
        return SimulatedStatus(len(file.content), file.modified_ns)

    def read_bytes(self) -> bytes:
        """Return the whole content."""
        return bytes(self._disk.file(str(self)).content)

    def read_text(self, encoding: str, errors: str = "strict") -> str:
        """Return the whole content as text."""
        return self.read_bytes().decode(encoding, errors)

    def write_bytes(self, data: bytes, /) -> int:
        """Replace the whole content."""
        disk = self._disk
        disk.create(self)
        byte_count = 0
        while byte_count < len(data):
            byte_count += disk.write(self, data[byte_count:], byte_count)
        return byte_count

    def touch(self) -> None:
        """Create an empty file if there is none."""
        if not self.exists():
            self._disk.create(self)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        if not missing_ok or self.exists():
            self._disk.unlink(str(self))

    def rename(self, target: SimulatedPath, /) -> SimulatedPath:
        """Rename the file or directory."""
        self._disk.rename(str(self), str(target))
        return target

    def replace(self, target: SimulatedPath, /) -> SimulatedPath:
        """Rename the file, replacing another one atomically."""
        return self.rename(target)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Create the directory."""
        if parents and str(self.parent) != str(self):
            self.parent.mkdir(parents=True, exist_ok=True)
        if not exist_ok or not self.exists():
            self._disk.mkdir(str(self))

    def iterdir(self) -> Iterator[SimulatedPath]:
        """Yield the paths in the directory."""
        for name in self._disk.names_in(str(self)):
            yield self / name

    def glob(self, pattern: str, /) -> Iterator[SimulatedPath]:
        """Yield the paths in the directory that match the pattern."""
        return (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

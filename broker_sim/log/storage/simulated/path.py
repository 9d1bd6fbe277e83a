"""Names a file on a simulated disk, and does what `pathlib.Path` does; see `StoragePath`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import PurePosixPath

    from broker_sim.log.storage.simulated.disk import SimulatedDisk


class SimulatedStatus(NamedTuple):
    """Size and time of a file."""

    st_size: int
    st_mtime_ns: int


class SimulatedPath:
    """A path; two are equal if they name the same file of the same disk."""

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
        written = 0
        while written < len(data):
            written += disk.write(self, data[written:], written)
        return written

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
        """Rename the file, in the place of another one in one step."""
        return self.rename(target)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Create the directory."""
        if parents and str(self.parent) != str(self):
            self.parent.mkdir(parents=True, exist_ok=True)
        if not exist_ok or not self.exists():
            self._disk.mkdir(str(self))

    def iterdir(self) -> Iterator[SimulatedPath]:
        """Yield what is in the directory."""
        for name in self._disk.names_in(str(self)):
            yield self / name

    def glob(self, pattern: str, /) -> Iterator[SimulatedPath]:
        """Yield what is in the directory and fits the pattern."""
        return (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

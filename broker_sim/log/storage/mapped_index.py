"""An index file that is searched where it is mapped into memory; mirrors `AbstractIndex` and `LazyIndex`.

    MappedIndex     of a segment, which may have never been used: nothing is open
    IndexEntries    its entries, for one look-up: two numbers each, in ascending order

A look-up is a binary search and takes no memory. The file system maps a file at its first use, and keeps as
many maps as it can spare.

An index has no checksum. A search that was misled by one wrong entry ends beside that entry, on one side
or the other. So a caller that compares the found entry and the next one with the batches detects any single wrong entry.

Deliberate difference: Kafka searches the end of an index first, for its pages are in memory; the readers there
need no index here, see `LogSegment`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from struct import Struct

    from broker_sim.log.storage.file_system import FileSystem, MappedFile, StoragePath


class IndexMismatchError(Exception):
    """An index file is lost or says something that the batches do not."""

    def __init__(self) -> None:
        super().__init__("has index files that do not stay as they are written")


class IndexEntries:
    """The entries of an index. It holds until files are opened or closed."""

    __slots__ = ("_content", "_entry", "count")

    def __init__(self, content: MappedFile, entry: Struct) -> None:
        """Raise IndexMismatchError for a file that ends within an entry."""
        self._content = content
        self._entry = entry
        self.count, rest = divmod(len(content), entry.size)
        if rest:
            raise IndexMismatchError

    def __getitem__(self, slot: int) -> tuple[int, int]:
        first, second = self._entry.unpack_from(self._content, slot * self._entry.size)
        return first, second

    def floor(self, first: int) -> int:
        """Return the last entry whose first number is at most `first`, -1 if there is none."""
        return bisect_right(range(self.count), first, key=lambda slot: self[slot][0]) - 1

    def ceiling(self, second: int) -> int:
        """Return the first entry whose second number is at least `second`, `count` if there is none."""
        return bisect_left(range(self.count), second, key=lambda slot: self[slot][1])


class MappedIndex:
    """One index file of a segment."""

    __slots__ = ("_entry", "_files", "_path", "_suffix")

    def __init__(self, files: FileSystem, suffix: str, entry: Struct) -> None:
        self._files = files
        self._suffix = suffix
        self._entry = entry
        self._path: StoragePath | None = None

    def entries(self, log_path: StoragePath) -> IndexEntries:
        """Return the entries beside that `.log` file. Raises IndexMismatchError if they are lost."""
        path = self._path
        if path is None:
            path = self._path = log_path.with_suffix(self._suffix)
        try:
            content = self._files.map(path)
        except FileNotFoundError as error:
            raise IndexMismatchError from error
        return IndexEntries(content, self._entry)

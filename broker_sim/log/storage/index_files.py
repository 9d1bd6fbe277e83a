"""The index files of a segment; mirrors `AbstractIndex`, `OffsetIndex`, `TimeIndex` and `TransactionIndex`.

    .index      relative offset int32, position int32       of a batch's last record, and of the batch
    .timeindex  timestamp int64, relative offset int32      the largest timestamp so far, and its offset
    .txnindex   version int16, producer id, first offset,   an aborted transaction
                last offset, last stable offset: int64

Offsets are relative to the segment's base. Kafka rebuilds missing index files, so they are written when a segment is
rolled, flushed or closed, not with each entry.

A look-up is a binary search in a file that is mapped into memory at its first use. An index has no checksum. A search
misled by one wrong entry ends next to that entry, so a caller that compares the entry found and the next one with the
batches detects any single wrong entry.

Deliberate difference: Kafka searches the end of an index first, because its pages are in memory; here the active
segment needs no index, see `LogSegment`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.log.storage.file_system import FileSystem, MappedFile, StoragePath
    from broker_sim.log.transaction_index import AbortedTxn

INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
ABORTED_TXN: Final = Struct(">hqqqq")
_ABORTED_TXN_VERSION: Final = 0

OFFSET_ENTRY_BYTES: Final = OFFSET_ENTRY.size
TIME_ENTRY_BYTES: Final = TIME_ENTRY.size


class SegmentIndexes(NamedTuple):
    """The entries of a segment's indexes, in the order of the log."""

    offsets: Sequence[tuple[int, int]]
    """Offset of a batch's last record, and number of bytes of the segment before the batch."""
    times: Sequence[tuple[int, int]]
    """Timestamp, and the offset of the last record of its batch."""
    aborted: Sequence[AbortedTxn]


def encode_offset_index(base_offset: int, entries: Sequence[tuple[int, int]]) -> bytes:
    """Return the content of a `.index` file."""
    pack = OFFSET_ENTRY.pack
    return b"".join([pack(offset - base_offset, position) for offset, position in entries])


def encode_time_index(base_offset: int, entries: Sequence[tuple[int, int]]) -> bytes:
    """Return the content of a `.timeindex` file."""
    pack = TIME_ENTRY.pack
    return b"".join([pack(timestamp, offset - base_offset) for timestamp, offset in entries])


def encode_aborted_transactions(entries: Sequence[AbortedTxn]) -> bytes:
    """Return the content of a `.txnindex` file."""
    return b"".join([ABORTED_TXN.pack(_ABORTED_TXN_VERSION, *entry) for entry in entries])


class IndexMismatchError(Exception):
    """An index file is missing, or contradicts the batches."""

    def __init__(self) -> None:
        super().__init__("has index files that change after they are written")


class IndexEntries:
    """The entries of one index file for one look-up; valid until files are opened or closed."""

    __slots__ = ("_content", "_entry", "count")

    def __init__(self, content: MappedFile, entry: Struct) -> None:
        """Raise IndexMismatchError if the file ends within an entry."""
        self._content = content
        self._entry = entry
        self.count, rest = divmod(len(content), entry.size)
        if rest:
            raise IndexMismatchError

    def __getitem__(self, slot: int) -> tuple[int, int]:
        first, second = self._entry.unpack_from(self._content, slot * self._entry.size)
        return first, second

    def floor(self, first: int) -> int:
        """Return the index of the last entry whose first number is at most `first`, -1 if there is none."""
        return bisect_right(range(self.count), first, key=lambda slot: self[slot][0]) - 1

    def ceiling(self, second: int) -> int:
        """Return the index of the first entry whose second number is at least `second`, `count` if there is none."""
        return bisect_left(range(self.count), second, key=lambda slot: self[slot][1])


class MappedIndex:
    """One index file of a segment, opened with its first use."""

    __slots__ = ("_entry", "_files", "_log_path", "_path", "_suffix")

    def __init__(self, files: FileSystem, suffix: str, entry: Struct) -> None:
        self._files = files
        self._suffix = suffix
        self._entry = entry
        self._path: StoragePath | None = None
        self._log_path: StoragePath | None = None

    def entries(self, log_path: StoragePath) -> IndexEntries:
        """Return the entries of the index of that `.log` file. Raises IndexMismatchError if the index is missing."""
        path = self._path
        if path is None or self._log_path is not log_path:
            self._log_path = log_path
            path = self._path = log_path.with_suffix(self._suffix)
        try:
            content = self._files.map(path)
        except FileNotFoundError as error:
            raise IndexMismatchError from error
        return IndexEntries(content, self._entry)

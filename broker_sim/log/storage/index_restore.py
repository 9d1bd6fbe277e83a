"""Makes the index files of a segment from its batches; mirrors `LogSegment.recover` as far as it is about indexes.

A file stays as it is if it fits: every entry is that of a batch, and none is missed. Its entries may be more or
fewer than `index.interval.bytes` asks for today.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from broker_sim.log.storage.checkpoint_file import replace_file
from broker_sim.log.storage.index_files import (
    ABORTED_TXN,
    INDEX_SUFFIX,
    OFFSET_ENTRY,
    TIME_ENTRY,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    SegmentIndexes,
    encode_aborted_transactions,
    encode_offset_index,
    encode_time_index,
)
from broker_sim.protocol.record_batch import NO_TIMESTAMP
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Sequence
    from struct import Struct

    from broker_sim.log.offset_index import OffsetIndex
    from broker_sim.log.storage.file_system import FileSystem, StoragePath
    from broker_sim.log.transaction_index import AbortedTxn


__all__ = ["IndexedBatches", "is_gap", "restore_transaction_index"]

log = get_logger(__name__)

SHORTEST_GAP_BYTES: Final = 1024 * 1024
"""Two entries that are no further apart are near enough, whatever the interval should be."""


class IndexedBatches:
    """The batches of a segment, and the index entries that they should have."""

    __slots__ = ("_base_offset", "_end_offsets", "_index", "_max_timestamps", "_positions")

    def __init__(
        self,
        base_offset: int,
        end_offsets: array[int],
        positions: array[int],
        max_timestamps: array[int],
        index: OffsetIndex,
    ) -> None:
        """Take the arrays of a `LogSegment`."""
        self._base_offset = base_offset
        self._end_offsets = end_offsets
        self._positions = positions
        self._max_timestamps = max_timestamps
        self._index = index

    def entries(self, aborted: Sequence[AbortedTxn]) -> SegmentIndexes:
        """Return the entries of the index files; `aborted` are the segment's transactions.

        The largest timestamp has an entry too, as in a segment that Kafka has rolled.
        """
        end_offsets, positions = self._end_offsets, self._positions
        max_timestamps = self._max_timestamps
        offsets, times = [], []
        newest = NO_TIMESTAMP
        for batch in self._index.batches(positions):
            offsets.append((end_offsets[batch] - 1, positions[batch] - positions[0]))
            if max_timestamps[batch] > newest:
                newest = max_timestamps[batch]
                times.append((newest, end_offsets[bisect_left(max_timestamps, newest)] - 1))
        if max_timestamps and max_timestamps[-1] > newest:
            newest = max_timestamps[-1]
            times.append((newest, end_offsets[bisect_left(max_timestamps, newest)] - 1))
        return SegmentIndexes(offsets, times, aborted)

    def first_wrong_offset(self, content: bytes) -> int | None:
        """Return the first entry of a `.index` that is not that of a batch, or before which one is missed."""
        positions, previous, slot = self._positions, 0, 0
        for relative_offset, position in OFFSET_ENTRY.iter_unpack(content):
            batch = bisect_left(positions, positions[0] + position)
            if (
                batch >= len(self._end_offsets)
                or (batch <= previous and slot)
                or positions[batch] - positions[0] != position
                or self._end_offsets[batch] - 1 - self._base_offset != relative_offset
                or self._is_gap(previous, batch)
            ):
                return slot
            previous, slot = batch, slot + 1
        return slot if self._is_gap(previous, len(self._end_offsets)) else None

    def _is_gap(self, batch: int, following: int) -> bool:
        if following <= batch:
            return False
        return is_gap(
            self._positions[following - 1] - self._positions[batch], self._index.interval_bytes
        )

    def first_wrong_time(self, content: bytes) -> int | None:
        """Return the first entry of a `.timeindex` whose timestamp did not come there, or the one that is missed."""
        newest, slot = NO_TIMESTAMP, 0
        for timestamp, relative_offset in TIME_ENTRY.iter_unpack(content):
            batch = bisect_left(self._max_timestamps, timestamp)
            if (
                timestamp <= newest
                or batch == len(self._max_timestamps)
                or self._max_timestamps[batch] != timestamp
                or self._end_offsets[batch] - 1 - self._base_offset != relative_offset
            ):
                return slot
            newest, slot = timestamp, slot + 1
        largest = self._max_timestamps[-1] if self._max_timestamps else NO_TIMESTAMP
        return None if newest == largest else slot

    def restore(self, files: FileSystem, log_path: StoragePath) -> None:
        """Write the index files beside a `.log` file that do not fit. Raises OSError."""
        base_offset = self._base_offset
        _restore(
            files,
            log_path.with_suffix(INDEX_SUFFIX),
            OFFSET_ENTRY,
            self.first_wrong_offset,
            lambda: encode_offset_index(base_offset, self.entries(()).offsets),
        )
        _restore(
            files,
            log_path.with_suffix(TIME_INDEX_SUFFIX),
            TIME_ENTRY,
            self.first_wrong_time,
            lambda: encode_time_index(base_offset, self.entries(()).times),
        )


def is_gap(skipped_bytes: int, interval_bytes: int) -> bool:
    """Whether an index has too few entries, if so many bytes are between one and a batch without any."""
    return skipped_bytes > max(2 * interval_bytes, SHORTEST_GAP_BYTES)


def restore_transaction_index(
    files: FileSystem, log_path: StoragePath, aborted: Sequence[AbortedTxn]
) -> None:
    """Write the `.txnindex` beside a `.log` file if it is not this; there is none if it would be empty.

    Raises OSError.
    """
    path = log_path.with_suffix(TXN_INDEX_SUFFIX)
    if not aborted:
        path.unlink(missing_ok=True)
        return
    expected = encode_aborted_transactions(aborted)

    def first_wrong(content: bytes) -> int | None:
        size = ABORTED_TXN.size
        starts = range(0, max(len(content), len(expected)), size)
        wrong = (at for at in starts if content[at : at + size] != expected[at : at + size])
        first = next(wrong, None)
        return None if first is None else first // size

    _restore(files, path, ABORTED_TXN, first_wrong, lambda: expected)


def _restore(
    files: FileSystem,
    path: StoragePath,
    entry: Struct,
    first_wrong: Callable[[bytes], int | None],
    encode: Callable[[], bytes],
) -> None:
    """Write a file anew unless it fits, and tell which entry does not."""
    why = "there is no such file"
    if path.exists():
        content = path.read_bytes()
        whole = len(content) - len(content) % entry.size
        wrong = first_wrong(content[:whole])
        if wrong is None and whole == len(content):
            return
        slot = whole // entry.size if wrong is None else wrong
        why = f"entry {slot} does not fit the batches"
    log.warning("index_rebuilt", file=str(path), why=why)
    files.close(path)
    replace_file(path, encode())

"""Rebuilds the index files of a segment from its batches; mirrors the index part of `LogSegment.recover`.

A file is left alone if every entry belongs to a batch and none is missing. It may have more or fewer entries than
the current `index.interval.bytes` requires.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.log.storage.checkpoint_files import replace_file
from broker_sim.log.storage.index_files import (
    ABORTED_TXN,
    INDEX_SUFFIX,
    OFFSET_ENTRY,
    TIME_ENTRY,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    encode_aborted_transactions,
    encode_offset_index,
    encode_time_index,
)
from broker_sim.protocol.record_batch import NO_TIMESTAMP
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from struct import Struct

    from broker_sim.log.storage.batch_entries import BatchEntries
    from broker_sim.log.storage.file_system import FileSystem, StoragePath
    from broker_sim.log.transaction_index import AbortedTxn

log = get_logger(__name__)

SHORTEST_GAP_BYTES: Final = 1024 * 1024
"""Distance between two entries that is always accepted, whatever the interval, in bytes."""


def first_wrong_offset(entries: BatchEntries, content: bytes) -> int | None:
    """Return the index of the first `.index` entry that matches no batch, or before which one is missing."""
    positions, previous, slot = entries.positions, 0, 0
    for relative_offset, position in OFFSET_ENTRY.iter_unpack(content):
        batch = bisect_left(positions, position)
        if (
            batch >= len(entries)
            or (batch <= previous and slot)
            or positions[batch] != position
            or entries.end_offsets[batch] - 1 - entries.start_offset != relative_offset
            or _is_gap_between(entries, previous, batch)
        ):
            return slot
        previous, slot = batch, slot + 1
    return slot if _is_gap_between(entries, previous, len(entries)) else None


def _is_gap_between(entries: BatchEntries, batch: int, following: int) -> bool:
    if following <= batch:
        return False
    skipped_bytes = entries.positions[following - 1] - entries.positions[batch]
    return is_gap(skipped_bytes, entries.index.interval_bytes)


def first_wrong_time(entries: BatchEntries, content: bytes) -> int | None:
    """Return the index of the first `.timeindex` entry that matches no batch, or of the missing one."""
    newest, slot = NO_TIMESTAMP, 0
    for timestamp, relative_offset in TIME_ENTRY.iter_unpack(content):
        batch = bisect_left(entries.max_timestamps, timestamp)
        if (
            timestamp <= newest
            or batch == len(entries)
            or entries.max_timestamps[batch] != timestamp
            or entries.end_offsets[batch] - 1 - entries.start_offset != relative_offset
        ):
            return slot
        newest, slot = timestamp, slot + 1
    return None if newest == entries.max_timestamp else slot


def restore_indexes(entries: BatchEntries, files: FileSystem, log_path: StoragePath) -> None:
    """Rewrite the index files of a `.log` file that do not match its batches. Raises OSError."""
    base_offset = entries.start_offset
    _restore(
        files,
        log_path.with_suffix(INDEX_SUFFIX),
        OFFSET_ENTRY,
        partial(first_wrong_offset, entries),
        lambda: encode_offset_index(base_offset, entries.indexes(()).offsets),
    )
    _restore(
        files,
        log_path.with_suffix(TIME_INDEX_SUFFIX),
        TIME_ENTRY,
        partial(first_wrong_time, entries),
        lambda: encode_time_index(base_offset, entries.indexes(()).times),
    )


def is_gap(skipped_bytes: int, interval_bytes: int) -> bool:
    """Whether an index must have an entry within `skipped_bytes` after its last one."""
    return skipped_bytes > max(2 * interval_bytes, SHORTEST_GAP_BYTES)


def restore_transaction_index(files: FileSystem, log_path: StoragePath, aborted: Sequence[AbortedTxn]) -> None:
    """Rewrite the `.txnindex` of a `.log` file unless it has these transactions; an empty one is removed.

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
    """Rewrite a file that does not match the batches, and log the first wrong entry."""
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

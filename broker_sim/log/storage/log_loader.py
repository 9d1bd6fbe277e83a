"""Opens the segments of a log directory; part of `LogLoader`.

1  Replacements interrupted by a kill are completed.

       00000000000000000000.log.cleaned   half-written: deleted
       00000000000000000000.log.swap      complete: replaces the segments from which it was made
       00000000000000000017.log.deleted   removed at once: its delay ended with the process

2  Each segment is opened in one of three ways.

       ends       only the ends of its files are read, see below
       whole      every batch is scanned; all of them were on disk, so damage takes the log offline
       recover    every batch is scanned with its CRC; the file is truncated after the last valid one, as in Kafka

3  The ends of a segment's files are all that the log needs; mirrors `LazyIndex`. After a clean shutdown this holds
   for all segments, after a kill for those that end at or below the recovery point.

       .log         size; the first batch
       .index       the last entry, from which the batches to the file's end are read: the end offset
       .timeindex   the last entry: the largest timestamp, which that batch must have and no later one may exceed

   A segment whose files do not match is scanned. Damage in the middle of a segment is detected when it is read, see
   `SealedBatches`.
"""

from __future__ import annotations

from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.log.storage.batch_entries import BatchEntries
from broker_sim.log.storage.batch_scan import MAX_RELATIVE_OFFSET, LogHistory, scan_segment
from broker_sim.log.storage.checkpoint_files import LEADER_EPOCHS, read_leader_epochs
from broker_sim.log.storage.deletions import DELETED_SUFFIX
from broker_sim.log.storage.file_batches import FileBatches
from broker_sim.log.storage.file_system import NS_PER_MS, ending_with
from broker_sim.log.storage.index_files import TXN_INDEX_SUFFIX
from broker_sim.log.storage.interface import SegmentContent
from broker_sim.log.storage.sealed_batches import SealedBatches
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, parse_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim.log.storage.file_system import FileSystem, StoragePath
    from broker_sim.log.storage.segment_file import SegmentFile
    from broker_sim.log.storage.snapshot_files import SnapshotFiles

LOG_SUFFIX: Final = ".log"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"


class OpenMode(Enum):
    """The parts of a segment that are read when it is opened."""

    ENDS = "ends"
    WHOLE = "whole"
    RECOVER = "recover"


class SegmentPlan(NamedTuple):
    """The way in which one segment is opened."""

    base_offset: int
    upper_bound_offset: int
    """Base offset of the next segment, or the largest offset of an index; all batches must end at or before it."""
    mode: OpenMode


def plan_segments(
    bases: Sequence[int], *, was_closed: bool, recovery_point: int, needs_no_batches: bool
) -> list[SegmentPlan]:
    """Return the plans of the segments with these base offsets, the oldest first.

    After a kill (not `was_closed`) the last segment is recovered, and all that end above the recovery point.
    `needs_no_batches` is the result of the function of that name.
    """
    plans = []
    for base_offset, next_base in zip_longest(bases, bases[1:]):
        recovers = not was_closed and (next_base is None or next_base > recovery_point)
        mode = OpenMode.ENDS if needs_no_batches else OpenMode.WHOLE
        upper_bound = base_offset + MAX_RELATIVE_OFFSET if next_base is None else next_base
        plans.append(SegmentPlan(base_offset, upper_bound, OpenMode.RECOVER if recovers else mode))
    return plans


def base_offsets(files: Iterable[StoragePath]) -> list[int]:
    """Return the base offsets of the segments; files whose name is not an offset are ignored."""
    stems = (path.stem for path in ending_with(files, LOG_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def complete_replacements(
    files: Sequence[StoragePath], file_system: FileSystem, delete_segment: Callable[[int], object]
) -> bool:
    """Complete the interrupted replacements and deletions of a log; return whether there were any.

    `delete_segment(base_offset)` deletes a replaced segment. Raises OSError.
    """
    swaps = ending_with(files, SWAP_SUFFIX)
    halves = [*ending_with(files, CLEANED_SUFFIX), *ending_with(files, DELETED_SUFFIX)]
    for path in halves:
        path.unlink()
    for swapped in ending_with(swaps, f"{LOG_SUFFIX}{SWAP_SUFFIX}"):
        base_offset = int(swapped.name.partition(".")[0])
        entries = BatchEntries(base_offset, 0)
        scan_segment(swapped, file_system, entries, LogHistory(), verify=False)
        for old in base_offsets(files):
            if base_offset <= old < max(entries.end_offset, base_offset + 1):
                delete_segment(old)
        swapped.rename(swapped.with_name(f"{base_offset:020d}{LOG_SUFFIX}"))
    for path in swaps:
        path.unlink(missing_ok=True)
    return bool(swaps or halves)


def needs_no_batches(files: Sequence[StoragePath], snapshots: SnapshotFiles, needed_snapshots: Iterable[int]) -> bool:
    """Return whether epochs and transactions are known without reading the batches of these files.

    A `.txnindex` has no checksum and may be missing, so transactions are read from the batches. Snapshots show
    whether there are any; the snapshots at the offsets `needed_snapshots` must exist.
    """
    try:
        is_known = any(map(read_leader_epochs, ending_with(files, LEADER_EPOCHS)))
    except (ValueError, TypeError):
        return False
    return (
        is_known
        and all(offset in snapshots for offset in needed_snapshots)
        and not ending_with(files, TXN_INDEX_SUFFIX)
        and not snapshots.knows_of_transactions
    )


def open_unread(
    file: SegmentFile, base_offset: int, upper_bound_offset: int, index_interval_bytes: int
) -> SegmentContent | None:
    """Return the segment of a `.log` file, read from the ends of its files; None if its batches must be scanned.

    All batches must end at or before the upper bound, where the next segment begins. Raises OSError.
    """
    status = file.path.stat()
    first = file.files.read(file.path, BATCH_OVERHEAD_BYTES, 0)
    if len(first) < BATCH_OVERHEAD_BYTES:
        return None
    sealed = SealedBatches.opened(file, base_offset, upper_bound_offset, status.st_size, index_interval_bytes)
    if sealed is None:
        return None
    return SegmentContent(
        base_offset,
        FileBatches.of_sealed(file, sealed),
        parse_header(first).max_timestamp,
        status.st_mtime_ns // NS_PER_MS,
    )

"""Opens a closed segment, all of which is on the disk, without looking at its batches; mirrors `LazyIndex`.

After a clean shutdown these are all segments, after a kill those that end at or below the recovery point.

What the log needs of it stands at the ends of its files:

    .log         size; the first batch
    .index       the last entry, from which the batches to the file's end are looked at: the end offset
    .timeindex   the last entry: the largest timestamp; the batch that it names must have it, and none behind that
                 one may have a larger one

A segment whose files do not fit together is looked at whole. What is damaged in the middle of another one is found
when it is read, see `SealedBatches`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log.storage.file_batches import FileBatches
from broker_sim.log.storage.file_system import NS_PER_MS, ending_with
from broker_sim.log.storage.index_files import TXN_INDEX_SUFFIX
from broker_sim.log.storage.interface import SegmentContent
from broker_sim.log.storage.leader_epoch_file import LEADER_EPOCHS, read_leader_epochs
from broker_sim.log.storage.sealed_batches import SealedBatches
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.log.storage.file_system import StoragePath
    from broker_sim.log.storage.segment_file import SegmentFile
    from broker_sim.log.storage.snapshot_files import SnapshotFiles


def needs_no_batches(files: Sequence[StoragePath], snapshots: SnapshotFiles, needed_snapshots: Iterable[int]) -> bool:
    """Return whether epochs and transactions are known without a look at the batches of these files.

    The batches say more of transactions than a `.txnindex`, which has no checksum and may be lost. A
    snapshot says that there are none; the needed ones must be there.
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
    """Return the segment of a `.log` file; None if its batches must be looked at.

    They end at or before the upper bound, at which the next segment begins. Raises OSError.
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

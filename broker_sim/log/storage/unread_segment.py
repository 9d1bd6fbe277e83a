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

from broker_sim.log.storage.file_system import ending_with
from broker_sim.log.storage.index_files import TXN_INDEX_SUFFIX
from broker_sim.log.storage.leader_epoch_file import LEADER_EPOCHS, read_leader_epochs
from broker_sim.log.storage.sealed_batches import SealedBatches
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.log.storage.batch_scan import SegmentContent
    from broker_sim.log.storage.file_batches import FileBatches
    from broker_sim.log.storage.file_system import StoragePath
    from broker_sim.log.storage.snapshot_files import SnapshotFiles

__all__ = ["needs_no_batches", "open_unread"]


def needs_no_batches(
    files: Sequence[StoragePath],
    snapshots: SnapshotFiles,
    needed_snapshots: Iterable[int],
) -> bool:
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
    path: StoragePath,
    batches: FileBatches,
    content: SegmentContent,
    upper_bound_offset: int,
) -> bool:
    """Note what is known of the `.log` file's batches in `content`; return False if they must be looked at.

    They end at or before the upper bound, at which the next segment begins. Raises OSError.
    """
    size_bytes = path.stat().st_size
    first = batches.files.read(path, BATCH_OVERHEAD_BYTES, 0)
    if len(first) < BATCH_OVERHEAD_BYTES:
        return False
    found = SealedBatches.opened(batches, content.base_offset, upper_bound_offset, size_bytes)
    if found is None:
        return False
    content.sealed = found
    content.positions[0] += size_bytes
    content.first_timestamp = parse_header(first).max_timestamp
    return True

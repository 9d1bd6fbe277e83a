"""Opens a closed segment, all of which is on the disk, without looking at its batches; mirrors `LazyIndex`.

After a clean shutdown these are all segments, after a kill those that end at or below the recovery point.

What the log needs of it stands at the ends of its files:

    .log         size; the first batch
    .index       the last entry, from which the batches to the file's end are looked at: the end offset
    .timeindex   the last entry: the largest timestamp; the batch that it names must have it

A segment whose files do not fit together is looked at whole, and so is any that somebody reads: see
`LogSegment`. So what is damaged in the middle of one is found when that segment is read.
"""

from __future__ import annotations

import errno
import sys
from array import array
from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING, Final

from broker_sim.log.storage.batch_scan import SegmentContent, scan_batches, scan_segment
from broker_sim.log.storage.file_system import ending_with
from broker_sim.log.storage.index_files import (
    INDEX_SUFFIX,
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from broker_sim.log.storage.leader_epoch_file import LEADER_EPOCHS, read_leader_epochs
from broker_sim.log.storage.log_history import LogHistory
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, NO_TIMESTAMP, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.log.storage.file_system import FileSystem, StoragePath
    from broker_sim.log.storage.snapshot_files import SnapshotFiles

__all__ = ["load_batches", "needs_no_batches", "open_unread"]

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_MOST_BYTES: Final = 8 * 1024 * 1024
"""Between two entries of an index; where there are more, the whole segment is looked at."""


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


def load_batches(
    path: StoragePath, files: FileSystem, opened: SegmentContent, upper_bound_offset: int | None
) -> SegmentContent:
    """Look at the batches that `open_unread` has noted as one; the file may have got more since.

    Raises OSError where it does not have them.
    """
    (start, end), end_offset = opened.positions[:2], opened.end_offsets[0]
    content = SegmentContent(opened.base_offset, start)
    valid_bytes = scan_segment(
        path,
        files,
        content,
        LogHistory(),
        verify=False,
        upper_bound_offset=upper_bound_offset,
        at_most_bytes=end - start,
    )
    if (start + valid_bytes, content.end_offset) != (end, end_offset):
        text = f"{path.name} is damaged at byte {valid_bytes}, offset {content.end_offset}"
        raise OSError(errno.EIO, text)
    return content


def open_unread(
    path: StoragePath, files: FileSystem, content: SegmentContent, upper_bound_offset: int | None
) -> bool:
    """Note all batches of the `.log` file as one in `content`; return False if they must be looked at.

    They end at or before the upper bound, at which the next segment begins. Raises OSError.
    """
    index, times = path.with_suffix(INDEX_SUFFIX), path.with_suffix(TIME_INDEX_SUFFIX)
    if not (index.exists() and times.exists()):
        return False
    offsets, newest = index.read_bytes(), times.read_bytes()
    size_bytes = path.stat().st_size
    if (
        size_bytes < BATCH_OVERHEAD_BYTES
        or len(offsets) % OFFSET_ENTRY_BYTES
        or len(newest) % TIME_ENTRY_BYTES
    ):
        return False

    def batches(start: int, end: int) -> list[tuple[int, int]]:
        """Return relative last offset and timestamp of each batch, none if there is anything else."""
        if not 0 <= start < end <= start + _MOST_BYTES:
            return []
        found = SegmentContent(content.base_offset, 0)
        data = files.read(path, end - start, start)
        if scan_batches(data, found, LogHistory(), False, upper_bound_offset) < end - start:
            return []
        ends = [end_offset - 1 - content.base_offset for end_offset in found.end_offsets]
        return list(zip(ends, found.max_timestamps, strict=True))

    tail = batches(_last_position(offsets), size_bytes)
    if not tail:
        return False
    timestamp = max(timestamp for _, timestamp in tail)
    if newest:
        largest, offset = _TIME_ENTRY.unpack_from(newest, len(newest) - TIME_ENTRY_BYTES)
        if (offset, largest) not in batches(*_place_of(offset, offsets, size_bytes)):
            return False
        timestamp = max(timestamp, largest)
    elif timestamp != NO_TIMESTAMP:
        return False
    content.add(content.base_offset + tail[-1][0] + 1, size_bytes, timestamp)
    content.first_timestamp = parse_header(files.read(path, BATCH_OVERHEAD_BYTES, 0)).max_timestamp
    return True


def _last_position(index: bytes) -> int:
    """Return where in the file the batch of the last entry is."""
    if not index:
        return 0
    _, position = _OFFSET_ENTRY.unpack_from(index, len(index) - OFFSET_ENTRY_BYTES)
    return int(position)


def _place_of(offset: int, index: bytes, size_bytes: int) -> tuple[int, int]:
    """Return from where to where in the file the batch is that ends with this relative offset."""
    numbers = array("i", index)
    if sys.byteorder == "little":
        numbers.byteswap()
    offsets, positions = numbers[::2], numbers[1::2]
    after = bisect_left(offsets, offset)
    if after < len(offsets) and offsets[after] == offset:
        end = positions[after + 1] if after + 1 < len(positions) else size_bytes
        return positions[after], end
    end = positions[after] if after < len(positions) else size_bytes
    return (positions[after - 1] if after else 0), end

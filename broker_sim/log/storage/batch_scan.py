"""Finds the batches of a `.log` file and the place where it is torn; mirrors `LogSegment.recover`.

A broker that was killed may leave half a batch at the end of its last segment. What counts ends before
the first batch that is incomplete, has another magic, goes back in offsets, or, where that is asked,
does not have the records that its CRC says.
"""

from __future__ import annotations

import mmap
from array import array
from struct import Struct
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from broker_sim.protocol.record_batch import (
    BATCH_OVERHEAD_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    NO_TIMESTAMP,
)

if TYPE_CHECKING:
    from pathlib import Path

    from broker_sim.log.storage.interface import Batches

__all__ = ["SegmentContent", "scan_segment"]

# Base offset, length, magic, CRC, last offset delta, max timestamp.
_FIELDS: Final = Struct(">qi4xbI2xi8xq")
_CRC_END: Final = 21


class SegmentContent:
    """The batches of a segment and the arrays by which they are found; see `LogSegment`."""

    __slots__ = (
        "base_offset",
        "batches",
        "end_offsets",
        "first_timestamp",
        "max_timestamps",
        "modified_ms",
        "positions",
    )

    def __init__(self, base_offset: int, start_position: int) -> None:
        """Make the content of an empty segment; who fills it sets `batches` too."""
        self.base_offset = base_offset
        batches: list[bytes] = []
        self.batches: Batches = batches
        self.end_offsets = array("q")
        self.positions = array("q", (start_position,))
        self.max_timestamps = array("q")
        self.first_timestamp = NO_TIMESTAMP
        self.modified_ms = 0

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self.end_offsets[-1] if self.end_offsets else self.base_offset

    def add(self, end_offset: int, size_bytes: int, max_timestamp: int) -> None:
        """Note a batch; `max_timestamp` is the batch's own."""
        timestamps = self.max_timestamps
        if not timestamps:
            self.first_timestamp = max_timestamp
        elif timestamps[-1] > max_timestamp:
            max_timestamp = timestamps[-1]
        self.end_offsets.append(end_offset)
        self.positions.append(self.positions[-1] + size_bytes)
        timestamps.append(max_timestamp)


def scan_segment(path: Path, content: SegmentContent, *, verify: bool) -> int:
    """Note each batch of the file in `content`; return how many bytes of the file count.

    With `verify` the CRC of each batch is checked too.
    """
    if path.stat().st_size < BATCH_OVERHEAD_BYTES:
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return _scan(mapped, content, verify=verify)


def _scan(mapped: mmap.mmap, content: SegmentContent, *, verify: bool) -> int:
    position, file_bytes = 0, len(mapped)
    while position + BATCH_OVERHEAD_BYTES <= file_bytes:
        base_offset, length, magic, crc, delta, timestamp = _FIELDS.unpack_from(mapped, position)
        end = position + LOG_OVERHEAD_BYTES + length
        if (
            magic != MAGIC_V2
            or end - position < BATCH_OVERHEAD_BYTES
            or end > file_bytes
            or base_offset < content.end_offset
            or delta < 0
            or (verify and crc32c(mapped[position + _CRC_END : end]) != crc)
        ):
            break
        content.add(base_offset + delta + 1, end - position, timestamp)
        position = end
    return position

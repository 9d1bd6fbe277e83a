"""Goes from batch to batch of a `.log` file by their headers; mirrors `FileLogInputStream`.

A search for a batch begins at the position that an index gives, and reads no records on the way. Each batch must
follow the one before it, as when a whole file is scanned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.log.storage.batch_header import HEADER_FIELDS, is_out_of_place
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, LOG_OVERHEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BLOCK_BYTES: Final = 4_096
"""What is read at once: the header of a large batch, or the first small ones."""
LARGE_BLOCK_BYTES: Final = 16 * 1024
"""What is read behind a small batch: others follow."""


class BatchDamagedError(Exception):
    """A place of the file does not hold a valid batch."""

    def __init__(self, position: int, end_offset: int) -> None:
        """`end_offset` is that of the batch before."""
        super().__init__(f"is damaged at byte {position}, offset {end_offset}")


class BatchPlace(NamedTuple):
    """Where a batch is in its file, and what its header says."""

    position: int
    end: int
    """The position after it."""
    last_offset: int
    max_timestamp: int


def walk_batches(
    read: Callable[[int, int], bytes],
    position: int,
    size_bytes: int,
    end_offset: int,
    upper_bound_offset: int,
    *,
    is_exact: bool,
) -> Iterator[BatchPlace]:
    """Yield the batches from a position to the end of a file of that size.

    `read(position, size_bytes)` reads the file. All offsets are at or above `end_offset`, and below the upper
    bound; with `is_exact` the last batch ends there. Raises BatchDamagedError where that does not hold.
    """
    block, start, block_bytes = b"", position, BLOCK_BYTES
    while position < size_bytes:
        at = position - start
        if at + BATCH_OVERHEAD_BYTES > len(block):
            if position + BATCH_OVERHEAD_BYTES > size_bytes:
                raise BatchDamagedError(position, end_offset)
            block = read(position, min(block_bytes, size_bytes - position))
            start, at = position, 0
        base_offset, length, _epoch, magic, _crc, _attributes, delta, timestamp, _producer = HEADER_FIELDS.unpack_from(
            block, at
        )
        end = position + LOG_OVERHEAD_BYTES + length
        last_offset = base_offset + delta
        if (
            is_out_of_place(magic, end - position, base_offset, delta, end_offset)
            or end > size_bytes
            or last_offset >= upper_bound_offset
            or (is_exact and end == size_bytes and last_offset + 1 != upper_bound_offset)
        ):
            raise BatchDamagedError(position, end_offset)
        yield BatchPlace(position, end, last_offset, timestamp)
        block_bytes = BLOCK_BYTES if end - position > BLOCK_BYTES else LARGE_BLOCK_BYTES
        position, end_offset = end, last_offset + 1


def settled(places: Iterable[BatchPlace]) -> Iterator[BatchPlace]:
    """Yield each batch when the one after it has been seen: a wrong offset shows only there."""
    before = None
    for place in places:
        if before is not None:
            yield before
        before = place
    if before is not None:
        yield before

"""The headers of the batches in a `.log` file; mirrors `LogSegment.recover` and `FileLogInputStream`.

    scan    the whole file, when a segment is opened: entries of all batches, epochs, aborted transactions
    walk    from a position found in an index, when a segment is read

A killed broker may leave an incomplete batch at the end of its last segment. The valid part of a file ends before
the first batch that is incomplete, has another magic, has decreasing offsets, or, with `verify`, has a wrong CRC.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError
from broker_sim.log.leader_epoch_cache import EpochEntry
from broker_sim.log.storage.batch_entries import BatchPlace
from broker_sim.log.transaction_index import AbortedTxn
from broker_sim.protocol.crc32c import crc32c
from broker_sim.protocol.record_batch import (
    BATCH_OVERHEAD_BYTES,
    CONTROL_FLAG,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    TRANSACTIONAL_FLAG,
    parse_header,
)
from broker_sim.protocol.records import read_end_txn_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker_sim.log.storage.batch_entries import BatchEntries
    from broker_sim.log.storage.file_system import FileSystem, StoragePath

HEADER_FIELDS: Final = Struct(">qiibIhi8xqq")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, max timestamp, producer."""
BLOCK_BYTES: Final = 4_096
"""Size of a read after a large batch, enough for the next header."""
LARGE_BLOCK_BYTES: Final = 16 * 1024
"""Size of a read after a small batch, which is likely to be followed by more small ones."""
_BASE_OFFSET: Final = Struct(">q")
_CRC_END: Final = 21
MAX_RELATIVE_OFFSET: Final = 2**31 - 1


def is_out_of_place(magic: int, size_bytes: int, base_offset: int, last_offset_delta: int, end_offset: int) -> bool:
    """Whether these header fields are impossible for a batch after `end_offset`."""
    return magic != MAGIC_V2 or size_bytes < BATCH_OVERHEAD_BYTES or base_offset < end_offset or last_offset_delta < 0


class BatchDamagedError(Exception):
    """The file has no valid batch at some position."""

    def __init__(self, position: int, end_offset: int) -> None:
        """`end_offset` is the end offset of the previous batch."""
        super().__init__(f"is damaged at byte {position}, offset {end_offset}")


def walk_batches(
    read: Callable[[int, int], bytes],
    position: int,
    size_bytes: int,
    end_offset: int,
    upper_bound_offset: int,
    *,
    is_exact: bool,
) -> Iterator[BatchPlace]:
    """Yield the batches from a position to the end of a file of `size_bytes`.

    `read(position, size_bytes)` reads the file. All offsets must be at or above `end_offset` and below the upper
    bound; with `is_exact` the last batch must end there. Otherwise raises BatchDamagedError.
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
    """Yield each batch only after its successor has been read, because that reveals a wrong offset."""
    before = None
    for place in places:
        if before is not None:
            yield before
        before = place
    if before is not None:
        yield before


class LogHistory:
    """The leader epochs and aborted transactions of a log, from its batches in the order of the log.

    Both have files of their own, which have no checksums. The transactions are always taken from the batches. The
    leader epochs are taken from their file, as in Kafka, because it has epochs whose first batches are compacted or
    deleted. Recovered batches add newer epochs; all others count only if the file is lost.
    """

    __slots__ = ("_ongoing", "aborted", "epochs", "recovered_epochs")

    def __init__(self) -> None:
        self.epochs: list[EpochEntry] = []
        """The first batch of each leader epoch that is above all before, the oldest first."""
        self.recovered_epochs: list[EpochEntry] = []
        """The first batch of each leader epoch, in recovered segments only."""
        self.aborted: list[AbortedTxn] = []
        """The aborted transactions with records, in the order of their markers."""
        self._ongoing: dict[int, int] = {}

    def add_epoch(self, epoch: int, base_offset: int, *, is_recovered: bool) -> None:
        """Add a batch whose epoch differs from that of its predecessor in the segment."""
        _add_if_newer(self.epochs, epoch, base_offset)
        if is_recovered:
            _add_if_newer(self.recovered_epochs, epoch, base_offset)

    def add_data(self, producer_id: int, base_offset: int) -> None:
        """Add a transactional batch."""
        self._ongoing.setdefault(producer_id, base_offset)

    def add_marker(self, producer_id: int, offset: int, *, is_commit: bool) -> None:
        """Add the end of a transaction."""
        first_offset = self._ongoing.pop(producer_id, None)
        if first_offset is not None and not is_commit:
            next_undecided = min(self._ongoing.values(), default=offset + 1)
            self.aborted.append(AbortedTxn(producer_id, first_offset, offset, next_undecided))


def _add_if_newer(entries: list[EpochEntry], epoch: int, base_offset: int) -> None:
    if epoch > (entries[-1].epoch if entries else -1):
        entries.append(EpochEntry(epoch, base_offset))


def scan_segment(
    path: StoragePath,
    files: FileSystem,
    entries: BatchEntries,
    history: LogHistory,
    *,
    verify: bool,
    upper_bound_offset: int | None = None,
    at_most_bytes: int | None = None,
) -> int:
    """Add each batch of the file to `entries` and `history`; return the size of the file's valid part in bytes.

    With `verify` the CRC of each batch is checked too. All batches must end at or before the upper bound, where
    the next segment begins. Reads at most the first `at_most_bytes` of the file (default: all).
    """
    if path.stat().st_size < BATCH_OVERHEAD_BYTES:
        return 0
    with files.mapped(path) as mapped, memoryview(mapped) as whole, whole[:at_most_bytes] as part:
        return scan_batches(part, entries, history, verify, upper_bound_offset)


def scan_batches(
    mapped: memoryview | bytes, entries: BatchEntries, history: LogHistory, verify: bool, upper_bound_offset: int | None
) -> int:
    """Scan bytes of a file, as `scan_segment` does."""
    if upper_bound_offset is None:
        upper_bound_offset = entries.start_offset + MAX_RELATIVE_OFFSET
    position, file_bytes, last_epoch = 0, len(mapped), -1
    end_offset = entries.end_offset
    while position + BATCH_OVERHEAD_BYTES <= file_bytes:
        base_offset, length, epoch, magic, crc, attributes, delta, timestamp, producer_id = HEADER_FIELDS.unpack_from(
            mapped, position
        )
        end = position + LOG_OVERHEAD_BYTES + length
        next_offset = base_offset + delta + 1
        if (
            is_out_of_place(magic, end - position, base_offset, delta, end_offset)
            or end > file_bytes
            or next_offset > upper_bound_offset
            or (verify and crc32c(mapped[position + _CRC_END : end]) != crc)
        ):
            break
        if base_offset != end_offset and end_offset <= _offset_at(mapped, end) < next_offset and _is_sound(mapped, end):
            break  # this batch's offset is wrong: its successor continues its predecessor
        if attributes & TRANSACTIONAL_FLAG and not _note_transaction(
            history, mapped[position:end], attributes, producer_id, base_offset
        ):
            break
        if epoch != last_epoch:
            last_epoch = epoch
            history.add_epoch(epoch, base_offset, is_recovered=verify)
        entries.add(next_offset, end - position, timestamp)
        end_offset = next_offset
        position = end
    return position


def _offset_at(mapped: memoryview | bytes, position: int) -> int:
    """Return the base offset of the batch at this position, -1 if the file ends before a whole header."""
    if position + BATCH_OVERHEAD_BYTES > len(mapped):
        return -1
    (base_offset,) = _BASE_OFFSET.unpack_from(mapped, position)
    return int(base_offset)


def _is_sound(mapped: memoryview | bytes, position: int) -> bool:
    """Return whether there is a whole batch with a correct CRC at this position."""
    _, length, _, magic, crc, *_ = HEADER_FIELDS.unpack_from(mapped, position)
    end = position + LOG_OVERHEAD_BYTES + length
    is_whole = magic == MAGIC_V2 and position + BATCH_OVERHEAD_BYTES <= end <= len(mapped)
    return is_whole and int(crc) == crc32c(mapped[position + _CRC_END : end])


def _note_transaction(
    history: LogHistory, batch: memoryview | bytes, attributes: int, producer_id: int, base_offset: int
) -> bool:
    """Add a transaction's batch or marker to the history; return False for a malformed marker."""
    if not attributes & CONTROL_FLAG:
        history.add_data(producer_id, base_offset)
    elif parse_header(batch).records_count:  # otherwise the cleaner has dropped the whole transaction
        try:
            marker = read_end_txn_marker(batch)
        except ApiError:
            return False
        history.add_marker(producer_id, base_offset, is_commit=marker.is_commit)
    return True

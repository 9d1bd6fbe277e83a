"""The producers of a log in `.snapshot` files; mirrors `ProducerStateManager.writeSnapshot`.

version int16 (1), CRC-32C of the rest uint32, number of producers int32, then for each
producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32,
timestamp int64, coordinator epoch int32, first offset of the open transaction int64 (-1: none)
"""

from __future__ import annotations

from collections.abc import MutableMapping
from struct import Struct
from struct import error as StructError  # noqa: N812 - the module's name for it is lower-case
from typing import TYPE_CHECKING, Final

from broker_sim.log.producer_state_entry import BatchMetadata, ProducerStateEntry
from broker_sim.log.storage.checkpoint_files import replace_file
from broker_sim.log.storage.file_system import ending_with
from broker_sim.protocol.crc32c import crc32c
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker_sim.log.storage.file_system import StoragePath
    from broker_sim.log.storage.guard import StorageGuard

log = get_logger(__name__)

SNAPSHOT_SUFFIX: Final = ".snapshot"

_VERSION: Final = 1
_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")


def encode_snapshot(entries: Sequence[ProducerStateEntry]) -> bytes:
    """Return the content of a snapshot file, with only the last batch of each producer."""
    parts = [_COUNT.pack(len(entries))]
    for entry in entries:
        last = entry.batch_metadata[-1] if entry.batch_metadata else None
        first_offset = entry.current_txn_first_offset
        parts.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                -1 if last is None else last.last_sequence,
                -1 if last is None else last.last_offset,
                0 if last is None else last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                -1 if first_offset is None else first_offset,
            )
        )
    body = b"".join(parts)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(content: bytes) -> list[ProducerStateEntry]:
    """Return the producers of a snapshot file. Raises ValueError if it is damaged."""
    try:
        version, crc = _HEAD.unpack_from(content)
        (count,) = _COUNT.unpack_from(content, _HEAD.size)
        start = _HEAD.size + _COUNT.size
        if version != _VERSION or crc != crc32c(content[_HEAD.size :]):
            raise ValueError("the snapshot has an unknown version or a wrong CRC")
        rows = list(_ENTRY.iter_unpack(content[start : start + count * _ENTRY.size]))
    except StructError as error:
        raise ValueError(f"the snapshot is truncated: {error}") from error
    return [_entry(*row) for row in rows]


def _entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    first_offset: int,
) -> ProducerStateEntry:
    batch = BatchMetadata(last_sequence, last_offset, offset_delta, timestamp)
    return ProducerStateEntry(
        producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        current_txn_first_offset=first_offset if first_offset >= 0 else None,
        batch_metadata=(batch,) if last_offset >= 0 else (),
    )


class SnapshotFiles(MutableMapping[int, list[ProducerStateEntry]]):
    """Snapshots by offset, read from their files; only the offsets are in memory."""

    def __init__(self, guard: StorageGuard) -> None:
        """Begin without snapshots; `guard` is the log's guard, which has the directory."""
        self._offsets: set[int] = set()
        self._guard = guard
        self.knows_of_transactions = False
        """Whether a loaded snapshot has a producer with an open or an ended transaction."""

    def load(self, files: Iterable[StoragePath]) -> bool:
        """Load the snapshots among the files of the log; a damaged one is deleted, as in Kafka.

        Returns whether there was any such file.
        """
        paths = ending_with(files, SNAPSHOT_SUFFIX)
        for path in paths:
            try:
                offset, entries = int(path.stem), decode_snapshot(path.read_bytes())
            except ValueError as error:
                _delete_damaged(path, error)
                continue
            self._offsets.add(offset)
            if any(map(_had_transaction, entries)):
                self.knows_of_transactions = True
        return bool(paths)

    def __getitem__(self, offset: int) -> list[ProducerStateEntry]:
        """Return a snapshot. Raises KeyError for a missing or damaged one, which is removed."""
        if offset not in self._offsets:
            raise KeyError(offset)
        path = self._path(offset)
        with self._guard.io("read a snapshot"):
            try:
                return decode_snapshot(path.read_bytes())
            except (FileNotFoundError, ValueError) as error:
                self._offsets.remove(offset)
                _delete_damaged(path, error)
        raise KeyError(offset)

    def __setitem__(self, offset: int, entries: list[ProducerStateEntry]) -> None:
        with self._guard.io("write a snapshot"):
            replace_file(self._path(offset), encode_snapshot(entries))
        self._offsets.add(offset)

    def __delitem__(self, offset: int) -> None:
        with self._guard.io("delete a snapshot"):
            self._path(offset).unlink(missing_ok=True)
        self._offsets.remove(offset)

    def __contains__(self, offset: object) -> bool:
        return offset in self._offsets

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def _path(self, offset: int) -> StoragePath:
        return self._guard.directory / f"{offset:020d}{SNAPSHOT_SUFFIX}"


def _had_transaction(entry: ProducerStateEntry) -> bool:
    return entry.coordinator_epoch >= 0 or entry.current_txn_first_offset is not None


def _delete_damaged(path: StoragePath, error: Exception) -> None:
    log.warning("snapshot_deleted", file=str(path), why=str(error))
    path.unlink(missing_ok=True)

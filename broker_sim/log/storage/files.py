"""The directory of one partition's log, as Kafka lays it out; mirrors `LogLoader` and `LogFileUtils`.

    topic-0/00000000000000000000.log         batches, byte for byte as brokers exchange them
            00000000000000000000.index       entries of the offset index
            00000000000000000000.timeindex   entries of the time index
            00000000000000000000.txnindex    aborted transactions, if there are any
            00000000000000000017.snapshot    the producers at an offset
            leader-epoch-checkpoint          where each leader epoch begins
            partition.metadata               the topic id
            closed-and-damaged               not Kafka's: the log is refused until it is sound again

What is deleted is renamed and goes later, see `deletions`; only snapshots go at once.

Deliberate difference: indexes are not preallocated and are written when a segment is sealed.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from broker_sim.log.leader_epoch_cache import EpochEntry, LeaderEpochCache
from broker_sim.log.storage.batch_scan import MAX_RELATIVE_OFFSET, SegmentContent, scan_segment
from broker_sim.log.storage.checkpoint_file import replace_file, write_lines
from broker_sim.log.storage.deletions import delete_dir
from broker_sim.log.storage.file_batches import CLOSED_AND_DAMAGED, FileBatches, write_synced
from broker_sim.log.storage.guard import StorageGuard
from broker_sim.log.storage.index_files import (
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    encode_aborted_transactions,
    encode_offset_index,
    encode_time_index,
)
from broker_sim.log.storage.index_restore import restore_transaction_index
from broker_sim.log.storage.interface import LogStorage
from broker_sim.log.storage.leader_epoch_file import LEADER_EPOCHS, read_leader_epochs
from broker_sim.log.storage.log_history import LogHistory
from broker_sim.log.storage.partition_metadata import (
    PARTITION_METADATA,
    encode_partition_metadata,
    read_topic_id,
)
from broker_sim.log.storage.replacements import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    base_offsets,
    complete_replacements,
)
from broker_sim.log.storage.snapshot_files import SnapshotFiles
from broker_sim.log.storage.unread_segment import needs_no_batches, open_unread
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.log.storage.deletions import DelayedDeletions
    from broker_sim.log.storage.file_system import StoragePath
    from broker_sim.log.storage.index_files import SegmentIndexes
    from broker_sim.log.storage.index_restore import IndexedBatches
    from broker_sim.log.transaction_index import AbortedTxn

__all__ = ["FileStorage"]

log = get_logger(__name__)

_INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
_NS_PER_MS: Final = 1_000_000


class FileStorage(LogStorage):
    """The files of one log. Thread rule: only the scheduler's thread."""

    is_persistent = True

    def __init__(
        self,
        directory: StoragePath,
        deletions: DelayedDeletions,
        *,
        high_watermark: int = 0,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        was_closed: bool = False,
    ) -> None:
        """Open an existing directory; without `was_closed` what is above the recovery point is verified."""
        self.directory = directory
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.recovery_point = recovery_point
        self._was_closed = was_closed
        self._is_metadata_synced = False
        self._is_new = False
        """Whether the directory was made just now: there is nothing in it to look for."""
        self._history = LogHistory()
        self._deletions = deletions
        self._files = deletions.files
        self._batches: dict[int, FileBatches] = {}
        """Those of the segments by base offset: they hear of new names."""
        self._sealed: tuple[int, int] | None = None
        """Base and end of the segment whose indexes are as they should be; an empty one has none."""
        self._guard = StorageGuard(directory)
        self.snapshots: SnapshotFiles = SnapshotFiles(directory, self._guard)

    def watch(self, on_failed: Callable[[], object]) -> None:
        """Call `on_failed()` once, with the first error of a file; the others are closed."""

        def failed() -> None:
            self.close()
            on_failed()

        self._guard.on_failed = failed

    def fail(self, action: str, error: ApiError) -> None:
        """Take the log offline, unless it is offline already."""
        self._guard.failed(action, OSError(errno.EIO, str(error)))

    def create(self, topic_id: bytes) -> None:
        """Create the directory with its `partition.metadata`, unless it is that of this topic already.

        A directory with segments of another topic, which could not be deleted, takes the log offline.
        """
        with self._guard.io("create the log"):
            try:
                self.directory.mkdir()
                self._is_new = True
            except FileExistsError:
                pass
            if self._is_new or self.topic_id != topic_id:
                if not self._is_new and base_offsets(self.directory.iterdir()):
                    raise OSError(errno.EEXIST, "the directory has segments of another topic")
                content = encode_partition_metadata(topic_id)
                replace_file(self.directory / PARTITION_METADATA, content)

    @property
    def topic_id(self) -> bytes | None:
        """The id in `partition.metadata`, None if the file is lost or damaged."""
        return read_topic_id(self.directory / PARTITION_METADATA)

    def load_segments(self) -> Iterator[SegmentContent]:
        """Yield the segments of the directory; what follows a torn batch is deleted, as in Kafka."""
        with self._guard.io("open the log"):
            files = [] if self._is_new else list(self.directory.iterdir())
            was_any = self.snapshots.load(files)
            self.begins_without_producers = self._was_closed and not was_any
            if complete_replacements(files, self._files, self.delete_segment):
                files = list(self.directory.iterdir())
            yield from self._load_segments(files)

    def _load_segments(self, files: Sequence[StoragePath]) -> Iterator[SegmentContent]:
        content: SegmentContent | None = None
        bases = base_offsets(files)
        refused = self.directory / CLOSED_AND_DAMAGED
        is_refused = refused in files
        may_be_unread = not is_refused and needs_no_batches(
            files, self.snapshots, () if self._was_closed else self._sealed_before_kill(bases)
        )
        self._was_closed = self._was_closed or is_refused
        for number, base_offset in enumerate(bases):
            content = SegmentContent(base_offset, 0 if content is None else content.positions[-1])
            path = self._path(base_offset, LOG_SUFFIX)
            status = path.stat()
            content.modified_ms = status.st_mtime_ns // _NS_PER_MS
            next_base = bases[number + 1] if number + 1 < len(bases) else None
            recovers = not self._was_closed and (
                next_base is None or next_base > self.recovery_point
            )
            batches = self._batches_of(base_offset, content.positions)
            content.batches = batches
            may_stay_unread = may_be_unread and not recovers
            upper_bound = base_offset + MAX_RELATIVE_OFFSET if next_base is None else next_base
            if may_stay_unread and open_unread(path, batches, content, upper_bound):
                yield content
                continue
            valid_bytes = scan_segment(
                path,
                self._files,
                content,
                self._history,
                verify=recovers,
                upper_bound_offset=next_base,
            )
            if valid_bytes < status.st_size:
                if not recovers:
                    # Once it was all on the disk: to cut it, now or later, would lose what is behind.
                    if self._was_closed:
                        refused.touch()
                    text = (
                        f"{path.name} is damaged at byte {valid_bytes}, offset {content.end_offset}"
                    )
                    raise OSError(errno.EIO, text)
                log.warning(
                    "log_truncated",
                    file=str(path),
                    valid_bytes=valid_bytes,
                    file_bytes=status.st_size,
                    end_offset=content.end_offset,
                )
                self._files.truncate(path, valid_bytes)
                self._delete_indexes(base_offset)
                for later in bases[number + 1 :]:
                    self.delete_segment(later)
                del bases[number + 1 :]
            yield content
        refused.unlink(missing_ok=True)
        if content is None:
            return
        base_offset, end_offset = content.base_offset, content.end_offset
        has_index = self._path(base_offset, INDEX_SUFFIX) in files
        if (self._was_closed and has_index) or (end_offset == base_offset and not has_index):
            self._sealed = (base_offset, end_offset)

    def _sealed_before_kill(self, bases: Sequence[int]) -> list[int]:
        """Return where segments end that are wholly below the recovery point, and not all deleted."""
        return [end for end in bases[1:] if self.log_start_offset < end <= self.recovery_point]

    def load_leader_epochs(self) -> list[EpochEntry]:
        """Return what `leader-epoch-checkpoint` has, and newer epochs of batches that were recovered.

        A file that is lost or damaged is made from all batches.
        """
        path = self.directory / LEADER_EPOCHS
        with self._guard.io("read the leader epochs"):
            why = "there is no such file"
            if path.exists():
                try:
                    cache = LeaderEpochCache(read_leader_epochs(path))
                except (ValueError, TypeError) as error:
                    why = str(error)
                else:
                    for entry in self._history.recovered_epochs:
                        if cache.latest_epoch is None or entry.epoch > cache.latest_epoch:
                            cache.assign(*entry)
                    return list(cache.entries)
            if self._history.epochs:
                log.warning("leader_epochs_rebuilt", file=str(path), why=why)
            return list(self._history.epochs)

    def load_aborted_transactions(self) -> list[AbortedTxn]:
        """Return what the batches say; the `.txnindex` files are for Kafka's tools."""
        return self._history.aborted

    def restore_indexes(self, base_offset: int, indexed: IndexedBatches) -> None:
        """Write the `.index` and `.timeindex` of a segment anew if they do not fit its batches."""
        with self._guard.io("look at the indexes"):
            indexed.restore(self._files, self._path(base_offset, LOG_SUFFIX))

    def restore_aborted(self, base_offset: int, aborted: Sequence[AbortedTxn]) -> None:
        """Write the `.txnindex` of a segment anew if the batches say something else."""
        with self._guard.io("look at the indexes"):
            restore_transaction_index(self._files, self._path(base_offset, LOG_SUFFIX), aborted)

    def create_segment(self, base_offset: int, positions: array[int]) -> FileBatches:
        """Create an empty `.log` file, in the place of one with that base offset."""
        with self._guard.io("create a segment"):
            if not self._is_new:
                self._delete_indexes(base_offset)
            self._is_new = False
            path = self._path(base_offset, LOG_SUFFIX)
            self._files.create(path)
            self._sealed = (base_offset, base_offset)
            return self._batches_of(base_offset, positions)

    def _batches_of(self, base_offset: int, positions: array[int]) -> FileBatches:
        path = self._path(base_offset, LOG_SUFFIX)
        batches = FileBatches(path, positions[0], positions, self._files, self._guard)
        self._batches[base_offset] = batches
        return batches

    def delete_segment(self, base_offset: int) -> None:
        """Delete the segment's files, after their delay; its snapshot is the producers' matter."""
        with self._guard.io("delete a segment"):
            self._sealed = None
            batches = self._batches.pop(base_offset, None)
            for suffix in (LOG_SUFFIX, *_INDEX_SUFFIXES):
                with suppress(FileNotFoundError):
                    path = self._path(base_offset, suffix)
                    deleted = self._deletions.delete_file(path, self.file_delete_delay_ms)
                    if batches is not None and suffix is LOG_SUFFIX:
                        batches.deleted(deleted)

    def truncated_to(self, offset: int) -> None:
        """Do the same; the last segment is sealed no more, even if it will end where it did."""
        super().truncated_to(offset)
        self._sealed = None

    def replace_segments(
        self,
        old_base_offsets: Sequence[int],
        cleaned: Sequence[bytes],
        positions: array[int],
        modified_ms: int,
    ) -> FileBatches:
        """Write the new segment beside the old ones, then swap them."""
        with self._guard.io("replace segments"):
            base_offset = old_base_offsets[0]
            beside = self._path(base_offset, f"{LOG_SUFFIX}{CLEANED_SUFFIX}")
            write_synced(self._files, beside, cleaned, modified_ms * _NS_PER_MS)
            swapped = beside.with_suffix(SWAP_SUFFIX)
            beside.rename(swapped)
            for old in old_base_offsets:
                self.delete_segment(old)
            swapped.rename(self._path(base_offset, LOG_SUFFIX))
            return self._batches_of(base_offset, positions)

    def is_sealed(self, base_offset: int, end_offset: int) -> bool:
        """Return whether it was sealed last; raises KAFKA_STORAGE_ERROR where nothing can be."""
        self._guard.check()
        return self._sealed == (base_offset, end_offset)

    def seal(self, base_offset: int, indexes: SegmentIndexes, end_offset: int) -> None:
        """Write the index files and sync the batches; the recovery point moves to `end_offset`."""
        with self._guard.io("flush a segment"):
            if end_offset > base_offset:
                self._sync(base_offset)
            offsets = encode_offset_index(base_offset, indexes.offsets)
            times = encode_time_index(base_offset, indexes.times)
            for suffix, content in ((INDEX_SUFFIX, offsets), (TIME_INDEX_SUFFIX, times)):
                path = self._path(base_offset, suffix)
                self._files.close(path)
                replace_file(path, content)
            transactions = self._path(base_offset, TXN_INDEX_SUFFIX)
            if indexes.aborted:
                replace_file(transactions, encode_aborted_transactions(indexes.aborted))
            else:
                transactions.unlink(missing_ok=True)
            self._sealed = (base_offset, end_offset)
            self.recovery_point = max(self.recovery_point, end_offset)

    def flush(self, base_offset: int, end_offset: int) -> None:
        """Sync the segment's batches; the recovery point moves to `end_offset`."""
        with self._guard.io("flush a segment"):
            if end_offset > max(base_offset, self.recovery_point):
                self._sync(base_offset)
                self.recovery_point = end_offset

    def write_leader_epochs(self, entries: Sequence[EpochEntry]) -> None:
        """Replace `leader-epoch-checkpoint`."""
        with self._guard.io("write the leader epochs"):
            write_lines(
                self.directory / LEADER_EPOCHS,
                (f"{entry.epoch} {entry.start_offset}" for entry in entries),
            )

    def delete(self) -> None:
        """Rename the directory, and delete it after the delay; until then the batches can be read."""
        self.close()
        doomed = delete_dir(self.directory)
        try:
            self.directory.rename(doomed)
        except FileNotFoundError:
            return
        except OSError as error:
            self._guard.failed("delete the log", error)
            return
        for batches in self._batches.values():
            batches.deleted(doomed / batches.path.name)
        self._deletions.delete_directory(doomed)

    def _sync(self, base_offset: int) -> None:
        """Sync a segment's batches, and before the first ones whose log it is."""
        if not self._is_metadata_synced:
            self._files.sync(self.directory / PARTITION_METADATA)
            self._is_metadata_synced = True
        self._files.sync(self._path(base_offset, LOG_SUFFIX))

    def close(self) -> None:
        """Close the files of the log."""
        self._files.close_in(self.directory)

    def _delete_indexes(self, base_offset: int) -> None:
        self._sealed = None
        for suffix in _INDEX_SUFFIXES:
            path = self._path(base_offset, suffix)
            self._files.close(path)
            path.unlink(missing_ok=True)

    def _path(self, base_offset: int, suffix: str) -> StoragePath:
        return self.directory / f"{base_offset:020d}{suffix}"

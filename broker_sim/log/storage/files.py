"""The directory of one partition's log, as Kafka lays it out; mirrors `LogLoader` and `LogFileUtils`.

    topic-0/00000000000000000000.log         batches, byte for byte as brokers exchange them
            00000000000000000000.index       entries of the offset index
            00000000000000000000.timeindex   entries of the time index
            00000000000000000000.txnindex    aborted transactions, if there are any
            00000000000000000017.snapshot    the producers at an offset
            leader-epoch-checkpoint          the start offset of each leader epoch
            partition.metadata               the topic id
            closed-and-damaged               not Kafka's: the log stays offline until it is repaired

Deleted files are renamed and removed later, see `deletions`; only snapshots are removed at once.

Deliberate difference: indexes are not preallocated and are written when a segment is sealed.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from broker_sim.log.storage.batch_entries import BatchEntries
from broker_sim.log.storage.batch_scan import LogHistory, scan_segment
from broker_sim.log.storage.checkpoint_files import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    encode_partition_metadata,
    load_leader_epochs,
    read_topic_id,
    replace_file,
    write_lines,
)
from broker_sim.log.storage.deletions import DELETED_SUFFIX, FUTURE_DIR_SUFFIX, delete_dir
from broker_sim.log.storage.file_batches import FileBatches
from broker_sim.log.storage.file_system import NS_PER_MS
from broker_sim.log.storage.guard import StorageGuard
from broker_sim.log.storage.index_files import (
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    encode_aborted_transactions,
    encode_offset_index,
    encode_time_index,
)
from broker_sim.log.storage.index_restore import restore_indexes, restore_transaction_index
from broker_sim.log.storage.interface import LogStorage, SegmentContent
from broker_sim.log.storage.log_loader import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    OpenMode,
    SegmentPlan,
    base_offsets,
    complete_replacements,
    needs_no_batches,
    open_unread,
    plan_segments,
)
from broker_sim.log.storage.segment_file import CLOSED_AND_DAMAGED, SegmentFile, copy_synced, write_synced
from broker_sim.log.storage.snapshot_files import SnapshotFiles
from broker_sim.protocol.record_batch import NO_TIMESTAMP
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.log.leader_epoch_cache import EpochEntry
    from broker_sim.log.storage.deletions import DelayedDeletions
    from broker_sim.log.storage.file_system import StoragePath
    from broker_sim.log.storage.index_files import SegmentIndexes
    from broker_sim.log.storage.interface import Batches
    from broker_sim.log.transaction_index import AbortedTxn

log = get_logger(__name__)

_INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


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
        """Open an existing directory; unless `was_closed`, everything above the recovery point is verified."""
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.recovery_point = recovery_point
        self._was_closed = was_closed
        self._is_metadata_synced = False
        self._is_new = False
        """Whether the directory was created just now and has no files."""
        self._history = LogHistory()
        self._deletions = deletions
        self._files = deletions.files
        self._segment_files: dict[int, SegmentFile] = {}
        """The open `.log` files by base offset; they must be told when they are renamed."""
        self._sealed: tuple[int, int] | None = None
        """Base and end offset of the last segment if its index files are up to date, else None."""
        self._guard = StorageGuard(directory)
        self.snapshots: SnapshotFiles = SnapshotFiles(self._guard)

    @property
    def directory(self) -> StoragePath:
        """The directory of the log's files."""
        return self._guard.directory

    def watch(self, on_failed: Callable[[], object]) -> None:
        """Call `on_failed()` at the first file error, after all files have been closed."""

        def failed() -> None:
            self.close()
            on_failed()

        self._guard.on_failed = failed

    def fail(self, action: str, error: ApiError) -> None:
        """Take the log offline, unless it is offline already."""
        self._guard.failed(action, OSError(errno.EIO, str(error)))

    def create(self, topic_id: bytes) -> None:
        """Create the directory with its `partition.metadata`, unless it already belongs to this topic.

        If the directory has segments of another topic, whose deletion failed, the log goes offline.
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

    def load_segments(self, index_interval_bytes: int) -> Iterator[SegmentContent]:
        """Yield the segments of the directory; segments after a torn batch are deleted, as in Kafka."""
        with self._guard.io("open the log"):
            files = [] if self._is_new else list(self.directory.iterdir())
            was_any = self.snapshots.load(files)
            self.begins_without_producers = self._was_closed and not was_any
            if complete_replacements(files, self._files, self.delete_segment):
                files = list(self.directory.iterdir())
            yield from self._load_segments(files, index_interval_bytes)

    def _load_segments(self, files: Sequence[StoragePath], index_interval_bytes: int) -> Iterator[SegmentContent]:
        bases = base_offsets(files)
        refused = self.directory / CLOSED_AND_DAMAGED
        is_refused = refused in files
        may_be_unread = not is_refused and needs_no_batches(
            files, self.snapshots, () if self._was_closed else self._sealed_before_kill(bases)
        )
        self._was_closed = self._was_closed or is_refused
        plans = plan_segments(
            bases, was_closed=self._was_closed, recovery_point=self.recovery_point, needs_no_batches=may_be_unread
        )
        content = None
        for number, plan in enumerate(plans):
            content, is_torn = self._open_segment(plan, index_interval_bytes)
            if is_torn:
                for later in plans[number + 1 :]:
                    self.delete_segment(later.base_offset)
            yield content
            if is_torn:
                break
        refused.unlink(missing_ok=True)
        if content is not None:
            self._note_sealed(content, files)

    def _open_segment(self, plan: SegmentPlan, index_interval_bytes: int) -> tuple[SegmentContent, bool]:
        """Return the segment, and whether it was truncated after its last valid batch."""
        file = self._file_of(plan.base_offset)
        if plan.mode is OpenMode.ENDS:
            content = open_unread(file, plan.base_offset, plan.upper_bound_offset, index_interval_bytes)
            if content is not None:
                return content, False
        status = file.path.stat()
        entries = BatchEntries(plan.base_offset, index_interval_bytes)
        valid_bytes = scan_segment(
            file.path,
            self._files,
            entries,
            self._history,
            verify=plan.mode is OpenMode.RECOVER,
            upper_bound_offset=plan.upper_bound_offset,
        )
        is_torn = valid_bytes < status.st_size
        if is_torn:
            self._cut(plan, file.path, status.st_size, valid_bytes, entries.end_offset)
        content = SegmentContent(
            plan.base_offset,
            FileBatches(file, entries),
            entries.max_timestamps[0] if entries else NO_TIMESTAMP,
            status.st_mtime_ns // NS_PER_MS,
        )
        return content, is_torn

    def _cut(self, plan: SegmentPlan, path: StoragePath, file_bytes: int, valid_bytes: int, end_offset: int) -> None:
        """Truncate the file after its last valid batch. Raises OSError unless it is recovered after a kill."""
        if plan.mode is not OpenMode.RECOVER:
            # The whole file was on disk once: a truncation, now or later, would lose the later records.
            if self._was_closed:
                (self.directory / CLOSED_AND_DAMAGED).touch()
            text = f"{path.name} is damaged at byte {valid_bytes}, offset {end_offset}"
            raise OSError(errno.EIO, text)
        log.warning(
            "log_truncated", file=str(path), valid_bytes=valid_bytes, file_bytes=file_bytes, end_offset=end_offset
        )
        self._files.truncate(path, valid_bytes)
        self._delete_indexes(plan.base_offset)

    def _note_sealed(self, last: SegmentContent, files: Sequence[StoragePath]) -> None:
        """Record whether the last segment's index files are up to date."""
        base_offset, end_offset = last.base_offset, last.batches.end_offset
        has_index = self._path(base_offset, INDEX_SUFFIX) in files
        if (self._was_closed and has_index) or (end_offset == base_offset and not has_index):
            self._sealed = (base_offset, end_offset)

    def _sealed_before_kill(self, bases: Sequence[int]) -> list[int]:
        """Return the ends of the segments below the recovery point that have undeleted records."""
        return [end for end in bases[1:] if self.log_start_offset < end <= self.recovery_point]

    def load_leader_epochs(self) -> list[EpochEntry]:
        """Return the epochs of `leader-epoch-checkpoint` and of the batches."""
        with self._guard.io("read the leader epochs"):
            return load_leader_epochs(self.directory / LEADER_EPOCHS, self._history)

    def load_aborted_transactions(self) -> list[AbortedTxn]:
        """Return the aborted transactions of the batches; the `.txnindex` files are for Kafka's tools."""
        return self._history.aborted

    def restore_indexes(self, base_offset: int, entries: BatchEntries) -> None:
        """Rewrite the `.index` and `.timeindex` of a segment if they do not fit its batches."""
        with self._guard.io("check the indexes"):
            restore_indexes(entries, self._files, self._path(base_offset, LOG_SUFFIX))

    def restore_aborted(self, base_offset: int, aborted: Sequence[AbortedTxn]) -> None:
        """Rewrite the `.txnindex` of a segment if it does not fit its batches."""
        with self._guard.io("check the indexes"):
            restore_transaction_index(self._files, self._path(base_offset, LOG_SUFFIX), aborted)

    def create_segment(self, base_offset: int, index_interval_bytes: int) -> FileBatches:
        """Create an empty `.log` file, replacing one with that base offset."""
        with self._guard.io("create a segment"):
            if not self._is_new:
                self._delete_indexes(base_offset)
            self._is_new = False
            file = self._file_of(base_offset)
            self._files.create(file.path)
            self._sealed = (base_offset, base_offset)
            return FileBatches(file, BatchEntries(base_offset, index_interval_bytes))

    def _file_of(self, base_offset: int) -> SegmentFile:
        path = self._path(base_offset, LOG_SUFFIX)
        file = self._segment_files[base_offset] = SegmentFile(path, self._files, self._guard)
        return file

    def delete_segment(self, base_offset: int) -> None:
        """Delete the segment's files after their delay; its snapshot is deleted by the producers' state."""
        with self._guard.io("delete a segment"):
            self._sealed = None
            file = self._segment_files.pop(base_offset, None)
            for suffix in (LOG_SUFFIX, *_INDEX_SUFFIXES):
                with suppress(FileNotFoundError):
                    path = self._path(base_offset, suffix)
                    deleted = self._deletions.delete_file(path, self.file_delete_delay_ms)
                    if file is not None and suffix is LOG_SUFFIX:
                        file.deleted(deleted)

    def truncated_to(self, offset: int) -> None:
        """Record a truncation; the last segment is not sealed any more, even if it ends at the same offset."""
        super().truncated_to(offset)
        self._sealed = None

    def replace_segments(self, old_base_offsets: Sequence[int], cleaned: Batches, modified_ms: int) -> FileBatches:
        """Write the new segment beside the old ones, then swap them."""
        with self._guard.io("replace segments"):
            base_offset = old_base_offsets[0]
            beside = self._path(base_offset, f"{LOG_SUFFIX}{CLEANED_SUFFIX}")
            batches = (batch for _, batch in cleaned.batches_from(base_offset))
            write_synced(self._files, beside, batches, modified_ms * NS_PER_MS)
            swapped = beside.with_suffix(SWAP_SUFFIX)
            beside.rename(swapped)
            for old in old_base_offsets:
                self.delete_segment(old)
            swapped.rename(self._path(base_offset, LOG_SUFFIX))
            return FileBatches(self._file_of(base_offset), cleaned.entries())

    def is_sealed(self, base_offset: int, end_offset: int) -> bool:
        """Return whether this was the last segment sealed. Raises KAFKA_STORAGE_ERROR if the log is offline."""
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
            write_lines(self.directory / LEADER_EPOCHS, (f"{entry.epoch} {entry.start_offset}" for entry in entries))

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
        for file in self._segment_files.values():
            file.deleted(doomed / file.path.name)
        self._deletions.delete_directory(doomed)

    def move_to(self, path: StoragePath) -> None:
        """Copy the log to that path of another directory, and delete it here. Raises OSError.

        A copy that fails is removed, and the log stays. The last step renames the copy, which is a log as soon as
        there is no other one: a kill loses neither.
        """
        future = path.with_name(f"{path.name}.{0:032x}{FUTURE_DIR_SUFFIX}")
        try:
            future.mkdir()
            for file in self.directory.iterdir():
                if not file.name.endswith(DELETED_SUFFIX):
                    copy_synced(self._files, file, future / file.name)
        except OSError:
            with suppress(OSError):
                self._files.remove_tree(future)
            raise
        self.close()
        doomed = delete_dir(self.directory)
        self.directory.rename(doomed)
        future.rename(path)
        self._files.sync(path / PARTITION_METADATA)
        self._guard.directory = path
        for segment in self._segment_files.values():
            segment.path = path / segment.path.name
        self._deletions.delete_directory(doomed)

    def _sync(self, base_offset: int) -> None:
        """Sync a segment's batches, and `partition.metadata` before the first ones."""
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

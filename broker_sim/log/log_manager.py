"""The logs of one broker; mirrors `LogManager`.

In memory a log manager outlives the broker's process: a restarted broker gets its logs back, after SIGKILL
with the high watermarks and log start offsets of the last checkpoint, after a clean shutdown with the latest
ones. With `LogDirectory`s the logs are files, and each process opens them with a new manager.
A new log goes to its preferred directory, otherwise to the one with the fewest logs (`LogManager.nextLogDirs`);
the directories of logs in memory are only names.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.cleaner.manager import LogCleanerManager
from broker_sim.log.log_offsets import CLOSED, HIGH_WATERMARKS, LOG_STARTS, ChangedLogs
from broker_sim.log.memory import MemoryAccount, unlimited_memory
from broker_sim.log.partition_log import PartitionLog
from broker_sim.log.producer_state_manager import ProducerStateManagerConfig
from broker_sim.log.storage import (
    PARTITION_METADATA,
    FileStorage,
    LogDirectory,
    LogDirectoryError,
    MemoryStorage,
    suppress_storage_error,
)
from broker_sim.log.storage.checkpoint_files import write_offsets
from broker_sim.log.storage.file_system import DiskSpace
from broker_sim.log.storage.log_directory import (
    CLEANER_OFFSET_CHECKPOINT_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_CHECKPOINT_FILE,
    RECOVERY_POINT_CHECKPOINT_FILE,
)
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.log.log_offsets import LogOffsets
    from broker_sim.log.memory import ReplicaMemory
    from broker_sim.log.storage import LogStorage
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.runtime.process import CallLater

event_log = get_logger(__name__)

UNKNOWN_TOPIC_ID = b""
"""The topic id of a log whose `partition.metadata` is damaged; it is offline for every topic."""
CHECKPOINTS = (HIGH_WATERMARKS, LOG_STARTS)
"""Checkpoint files that are rewritten when a log is created or deleted, or its offset moves."""
PROGRESS_MS = 1_000
"""Interval of progress messages while logs are opened."""
MEMORY: Final = "/memory"
"""Name of the only directory of logs in memory, unless the configuration has others."""


class LogManager:
    """Logs by partition; each belongs to one topic id."""

    def __init__(
        self,
        clock: Clock,
        producers: ProducerStateManagerConfig | None = None,
        memory: MemoryAccount | None = None,
        directories: Sequence[LogDirectory] = (),
        memory_names: Sequence[str] = (MEMORY,),
    ) -> None:
        """Open the logs of the directories (default: memory); call `recover` before they are used."""
        self._clock = clock
        self._on_truncated = self._truncated  # one object for all logs
        self.memory = memory or MemoryAccount()
        self.producers = producers or ProducerStateManagerConfig()
        self._logs: dict[TopicPartition, tuple[bytes, PartitionLog]] = {}
        self.changed = ChangedLogs(CLOSED, HIGH_WATERMARKS, LOG_STARTS)
        """The logs whose offsets have moved."""
        self._unwritten = set(CHECKPOINTS)
        """The checkpoint files that are out of date."""
        self.directories = directories
        self.names = [absolute_name(each) for each in directories] or list(memory_names)
        """The absolute path of each directory, in the order of `log.dirs`."""
        self.preferred: dict[TopicPartition, str] = {}
        """The directory in which a log that does not exist yet will be created."""
        self._places: dict[TopicPartition, int] = {}
        """The index of each log's directory in `log.dirs`."""
        cleaner_offsets = {key: offset for each in directories for key, offset in each.cleaner_offsets.items()}
        self.cleaner = LogCleanerManager(clock, cleaner_offsets, self._checkpoint_cleaner_offsets)
        """The compacted logs to clean, and their first dirty offsets."""
        self.offline: dict[TopicPartition, tuple[bytes, FileStorage]] = {}
        """The logs whose files have failed, with topic id and storage; for reading only."""
        self.on_offline: Callable[[TopicPartition], object] = lambda _key: None
        """Called with each partition whose log goes offline."""
        self.clean_shutdown_epoch = -1
        """The epoch of the broker that last called `shutdown`, -1 if none has (KIP-966)."""
        self._written_recovery_points: Mapping[TopicPartition, int] = {
            key: offset for each in directories for key, offset in each.recovery_points.items()
        }
        """The recovery points of the last checkpoint."""
        epochs = {-1 if each.clean_shutdown_epoch is None else each.clean_shutdown_epoch for each in directories}
        if len(epochs) == 1:
            (self.clean_shutdown_epoch,) = epochs
        for directory in directories:
            directory.finish_moves(lambda log: any((each.path / log).exists() for each in directories))
        for number, directory in enumerate(directories):
            self._load(number, directory)

    def _load(self, place: int, directory: LogDirectory) -> None:
        logs = list(directory.logs())
        logged_ms = self._clock.now_ms()
        for number, (topic_partition, topic_id, storage) in enumerate(logs, 1):
            if topic_partition in self._places:
                first = self.names[self._places[topic_partition]]
                raise LogDirectoryError(f"{topic_partition} is both in {first} and in {directory.path}: remove one")
            self._places[topic_partition] = place
            if topic_id is None:
                self._metadata_damaged(topic_partition, UNKNOWN_TOPIC_ID, storage)
            else:
                self._open_files(topic_partition, topic_id, TopicConfig(), storage)
            now_ms = self._clock.now_ms()
            if now_ms - logged_ms >= PROGRESS_MS:
                logged_ms = now_ms
                event_log.bind(self._clock).info(
                    "logs_opened", directory=str(directory.path), logs=number, of=len(logs)
                )

    def _metadata_damaged(self, topic_partition: TopicPartition, topic_id: bytes, storage: FileStorage) -> None:
        """Take a log offline whose topic id cannot be read."""
        self._failure_of(topic_partition, topic_id, storage)()
        path = str(storage.directory / PARTITION_METADATA)
        event_log.bind(self._clock).error("partition_metadata_damaged", file=path)

    def _open_files(
        self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig, storage: FileStorage
    ) -> PartitionLog | None:
        """Open a log in files; None if they cannot be read, and the log is offline."""
        storage.watch(self._failure_of(topic_partition, topic_id, storage))
        try:
            log = self._open(topic_partition, config, storage, unlimited_memory(topic_partition))
        except ApiError as error:
            storage.fail("open the log", error)
            return None
        self._keep(topic_partition, topic_id, log)
        return log

    def _keep(self, topic_partition: TopicPartition, topic_id: bytes, log: PartitionLog) -> None:
        self._logs[topic_partition] = (topic_id, log)
        self._unwritten.update(CHECKPOINTS)

    def _open(
        self, topic_partition: TopicPartition, config: TopicConfig, storage: LogStorage, memory: ReplicaMemory
    ) -> PartitionLog:
        log = PartitionLog(
            topic_partition,
            config,
            self._clock,
            producers=self.producers,
            memory=memory,
            moved=self.changed.moved,
            storage=storage,
        )
        log.on_truncated = self._on_truncated
        return log

    def _truncated(self, log: PartitionLog, offset: int) -> None:
        """Record that a log was truncated: no checkpoint may be above its new end."""
        topic_partition = log.topic_partition
        self.cleaner.truncated(topic_partition, offset)
        if self._written_recovery_points.get(topic_partition, 0) > log.storage.recovery_point:
            self.checkpoint_recovery_points()

    def _failure_of(self, topic_partition: TopicPartition, topic_id: bytes, storage: FileStorage) -> Callable[[], None]:
        """Return the callback for a failure of the log's files."""

        def take_offline() -> None:
            self._logs.pop(topic_partition, None)
            self.offline[topic_partition] = (topic_id, storage)
            self.cleaner.abort_cleaning(topic_partition)
            self.on_offline(topic_partition)

        return take_offline

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply the broker's changed dynamic configurations of producers and deletions."""
        self.producers.producer_id_expiration_ms = config.producer_id_expiration_ms
        self.producers.transaction_verification_enabled = config.transaction_partition_verification_enable
        if self.directories:  # which share their deletions
            self.directories[0].deletions.directory_delay_ms = config.log_segment_delete_delay_ms

    def startup(self, call_later: CallLater, config: BrokerConfig) -> None:
        """Begin to delete the files of deleted logs and segments, in the broker's new process."""
        if self.directories:  # which share their deletions
            self.directories[0].deletions.start(call_later, config.log_segment_delete_delay_ms)

    def offline_logs(self) -> frozenset[tuple[bytes, int]]:
        """Return topic id and partition of the logs that are offline."""
        return frozenset((topic_id, key.partition) for key, (topic_id, _) in self.offline.items())

    def get_or_create(self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig) -> PartitionLog:
        """Return the partition's log; a log of an older topic of the same name is replaced.

        Raises KAFKA_STORAGE_ERROR for one that is offline, or cannot be created.
        """
        entry = self._logs.get(topic_partition)
        if entry is not None and entry[0] == topic_id:
            return entry[1]
        offline = self.offline.get(topic_partition)
        if offline is not None and offline[0] in (topic_id, UNKNOWN_TOPIC_ID):
            # The controller must learn which topic is offline.
            self.offline[topic_partition] = (topic_id, offline[1])
            raise _offline(topic_partition)
        self.delete(topic_partition)
        place = self._place_of_new_log(topic_partition)
        self._places[topic_partition] = place
        if not self.directories:
            memory = self.memory.open_replica(topic_partition, topic_id)
            log = self._open(topic_partition, config, MemoryStorage(), memory)
            self._keep(topic_partition, topic_id, log)
            return log
        storage = self.directories[place].new_log(topic_partition)
        storage.watch(self._failure_of(topic_partition, topic_id, storage))
        storage.create(topic_id)
        opened = self._open_files(topic_partition, topic_id, config, storage)
        if opened is None:
            raise _offline(topic_partition)
        return opened

    def _place_of_new_log(self, topic_partition: TopicPartition) -> int:
        """Return the index of the preferred directory, otherwise of the first one with the fewest logs."""
        preferred = self.preferred.pop(topic_partition, None)
        if preferred is not None:
            return self.names.index(preferred)
        if len(self.names) == 1:
            return 0
        counts = Counter(self._places.values())
        return min(range(len(self.names)), key=lambda place: counts[place])

    def move(self, topic_partition: TopicPartition, name: str) -> None:
        """Move the log to the directory of that name before returning.

        Raises KAFKA_STORAGE_ERROR if the files cannot be copied; the log then stays where it is.
        """
        place = self.names.index(name)
        log = self._logs[topic_partition][1]
        if isinstance(log.storage, FileStorage):
            log.flush()
            try:
                log.storage.move_to(self.directories[place].log_path(topic_partition))
            except OSError as error:
                why = error.strerror or str(error)
                event_log.bind(self._clock).error("move_failed", log=str(topic_partition), directory=name, why=why)
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot move {topic_partition} to {name}") from error
        self._places[topic_partition] = place
        self._unwritten.update(CHECKPOINTS)
        self._written_recovery_points = {}
        self.checkpoint_offsets()

    def directory_of(self, topic_partition: TopicPartition) -> str | None:
        """Return the path of the directory that the log is in, None without a log."""
        place = self._places.get(topic_partition)
        return None if place is None else self.names[place]

    @property
    def logs(self) -> Iterable[PartitionLog]:
        """All online logs, in order of creation."""
        return [log for _, log in self._logs.values()]

    def space(self, name: str) -> DiskSpace:
        """Return the size of that directory's disk, or the memory limit of all logs of the cluster.

        Raises OSError.
        """
        if self.directories:
            directory = self.directories[self.names.index(name)]
            return directory.files.space(directory.path)
        limit_bytes = self.memory.limit_bytes
        return DiskSpace(limit_bytes, max(0, limit_bytes - self.memory.used_bytes))

    def compacted_logs(self) -> list[PartitionLog]:
        """Return the logs that the cleaner cleans."""
        return [log for _, log in self._logs.values() if log.config.is_compacted]

    def get(self, topic_partition: TopicPartition, topic_id: bytes) -> PartitionLog | None:
        """Return the log of that partition and topic id, or None."""
        entry = self._logs.get(topic_partition)
        return entry[1] if entry is not None and entry[0] == topic_id else None

    def delete(self, topic_partition: TopicPartition) -> None:
        """Delete the partition's log if there is one."""
        self._unwritten.update(CHECKPOINTS)
        self._places.pop(topic_partition, None)
        entry = self._logs.pop(topic_partition, None)
        if entry is not None:
            self.cleaner.forget(topic_partition)
            entry[1].memory.close()
            entry[1].storage.delete()
            self.changed.discard(entry[1].offsets)
        offline = self.offline.pop(topic_partition, None)
        if offline is not None:
            self.cleaner.forget(topic_partition)
            offline[1].delete()

    def delete_strays(self, is_hosted: Callable[[TopicPartition, bytes], bool]) -> None:
        """Delete the logs that a restarted broker no longer hosts, by its first metadata."""
        for topic_partition, (topic_id, _) in [*self._logs.items(), *self.offline.items()]:
            if topic_id != UNKNOWN_TOPIC_ID and not is_hosted(topic_partition, topic_id):
                self.delete(topic_partition)

    def shutdown(self, broker_epoch: int) -> None:
        """Close every log, and store the epoch as Kafka's file `.kafka_cleanshutdown` does.

        Logs that have not changed since they were opened or created need no closing.
        With a log offline, or a full disk, neither directory nor broker counts as shut down cleanly.
        """
        for offsets in self.changed.take(CLOSED):
            log = self._logs.get(offsets.topic_partition)
            if log is not None:
                with suppress_storage_error():
                    log[1].close()
        is_clean = self.checkpoint_offsets() and not self.offline
        for directory in self.directories if is_clean else ():
            is_clean = self._write(partial(directory.write_clean_shutdown, broker_epoch)) and is_clean
        self.clean_shutdown_epoch = broker_epoch if is_clean else -1

    def recover(self) -> None:
        """Prepare all logs for a new broker process: state that was only in memory is lost or rebuilt.

        Logs in files can be recovered once: for the next process a new manager opens the directory.
        """
        self.cleaner.restart()
        self.preferred.clear()
        for log in self.logs:
            try:
                log.recover()
            except ApiError as error:
                log.storage.fail("recover the log", error)

    def checkpoint_log_start_offsets(self) -> bool:
        """Checkpoint the log start offset of every log, so that deleted records stay deleted after a kill.

        Returns whether the file is up to date.
        """
        for offsets in self._take_changed(LOG_STARTS):
            offsets.checkpoint_log_start_offset()
        if not self.directories or LOG_STARTS not in self._unwritten:
            return True
        log_starts = {key: storage.log_start_offset for key, storage in self._storages()}
        return self._write_offsets(LOG_START_OFFSET_CHECKPOINT_FILE, log_starts, LOG_STARTS)

    def checkpoint_high_watermarks(self) -> bool:
        """Checkpoint the high watermarks, from which a killed broker continues.

        Returns as `checkpoint_log_start_offsets`.
        """
        for offsets in self._take_changed(HIGH_WATERMARKS):
            offsets.checkpoint_high_watermark()
        if not self.directories or HIGH_WATERMARKS not in self._unwritten:
            return True
        high_watermarks = {key: storage.high_watermark for key, storage in self._storages()}
        return self._write_offsets(HIGH_WATERMARK_FILE, high_watermarks, HIGH_WATERMARKS)

    def _take_changed(self, reader: str) -> list[LogOffsets]:
        changed = self.changed.take(reader)
        if changed:
            self._unwritten.add(reader)
        return changed

    def checkpoint_recovery_points(self) -> bool:
        """Checkpoint the recovery point of each log; returns as `checkpoint_log_start_offsets`."""
        if not self.directories:
            return True
        offsets = {key: storage.recovery_point for key, storage in self._storages()}
        if offsets == self._written_recovery_points:
            return True
        is_written = self._write_offsets(RECOVERY_POINT_CHECKPOINT_FILE, offsets)
        if is_written:
            self._written_recovery_points = offsets
        return is_written

    def checkpoint_offsets(self) -> bool:
        """Write all checkpoints; return whether all files are up to date."""
        outcomes = (
            self.checkpoint_recovery_points(),
            self.checkpoint_log_start_offsets(),
            self.checkpoint_high_watermarks(),
        )
        return all(outcomes)

    def _checkpoint_cleaner_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Checkpoint the first dirty offsets, without those of deleted partitions."""
        present = {key: value for key, value in offsets.items() if self._has(key)}
        self._write_offsets(CLEANER_OFFSET_CHECKPOINT_FILE, present)

    def _has(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._logs or topic_partition in self.offline

    def flush_dirty_logs(self) -> None:
        """Flush the logs whose last flush is `flush.ms` or longer ago."""
        now_ms = self._clock.now_ms()
        for log in self.logs:
            if now_ms - log.last_flush_ms >= log.config.flush_ms:
                with suppress_storage_error():
                    log.flush_batches()

    def _storages(self) -> Iterator[tuple[TopicPartition, LogStorage]]:
        """Yield the storage of every log, offline ones included: their last checkpoints must not be lost."""
        for key, (_, log) in self._logs.items():
            yield key, log.storage
        for key, (_, storage) in self.offline.items():
            yield key, storage

    def _write_offsets(self, file_name: str, offsets: Mapping[TopicPartition, int], name: str = "") -> bool:
        """Write a checkpoint file of each directory, with the offsets of its logs; as `_write`."""
        by_place: list[dict[TopicPartition, int]] = [{} for _ in self.directories]
        for key, offset in offsets.items() if by_place else ():
            by_place[self._places[key]][key] = offset
        outcomes = [
            self._write(partial(write_offsets, directory.path / file_name, own))
            for directory, own in zip(self.directories, by_place, strict=True)
        ]
        if all(outcomes):
            self._unwritten.discard(name)
        return all(outcomes)

    def _write(self, write: Callable[[], object]) -> bool:
        """Write a file of a directory; a failure is logged, and the file is written with the next checkpoint."""
        try:
            write()
        except OSError as error:
            event_log.bind(self._clock).error(
                "checkpoint_failed", file=str(error.filename), why=error.strerror or str(error)
            )
            return False
        return True

    def delete_old_segments(self) -> None:
        """Apply the retention to every log except compacted ones, which the cleaner handles."""
        for log in self.logs:
            if log.may_have_old_segments and not log.config.is_compacted:
                with suppress_storage_error():
                    log.delete_old_segments()

    def reclaim(self) -> None:
        """Free the memory now that the next retention check and checkpoint would free."""
        for log in self.logs:
            with suppress_storage_error():
                log.delete_old_segments()
        self.checkpoint_log_start_offsets()

    def remove_expired_producers(self) -> None:
        """Expire producers that have written nothing for `producer.id.expiration.ms`."""
        now_ms = self._clock.wall_clock_ms()
        for log in self.logs:
            log.producer_state.remove_expired_producers(now_ms)


def absolute_name(directory: LogDirectory) -> str:
    """Return the absolute path of a directory in files."""
    return str(Path(str(directory.path)).absolute())


def _offline(topic_partition: TopicPartition) -> ApiError:
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {topic_partition} is offline")

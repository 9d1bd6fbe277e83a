"""A broker's log directory; mirrors the files of `LogManager` in each of `log.dirs`.

meta.properties                      the owner of the directory: cluster.id, node.id, directory.id
.lock                                held by the process that uses it
.kafka_cleanshutdown                 {"version":0,"brokerEpoch":N} of a broker that shut down
replication-offset-checkpoint        the high watermarks
log-start-offset-checkpoint          the log start offsets that are not those of the first segment
recovery-point-offset-checkpoint     the offset up to which each log is on disk
cleaner-offset-checkpoint            the offset up to which each compacted log is clean
topic-0/, topic-1/, ...              the logs
topic-2.5b2bfb1a...-delete/          a deleted log, whose files are removed later
topic-3.00000000...-future/          a log that is being copied here from another directory
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ConfigError
from broker_sim.log.storage.checkpoint_files import (
    PARTITION_METADATA,
    read_offsets,
    replace_file,
)
from broker_sim.log.storage.deletions import DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, DelayedDeletions
from broker_sim.log.storage.files import FileStorage
from broker_sim.log.storage.open_files import OpenFiles
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.uuids import uuid_text
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.system import close_descriptor, open_descriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.log.storage.file_system import FileSystem, StoragePath

META_PROPERTIES: Final = "meta.properties"
LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT_FILE: Final = "log-start-offset-checkpoint"
RECOVERY_POINT_CHECKPOINT_FILE: Final = "recovery-point-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT_FILE: Final = "cleaner-offset-checkpoint"

log = get_logger(__name__)


class LogDirectoryError(ConfigError):
    """A directory is unusable: another process has locked it, or it belongs to another broker."""


class LogDirectory:
    """One broker's directory, locked until `close`."""

    def __init__(
        self,
        path: StoragePath,
        cluster_id: str,
        broker_id: int,
        files: FileSystem | None = None,
        beside: LogDirectory | None = None,
    ) -> None:
        """Open or create the directory.

        `files` is a simulated disk, which is not locked (default: the machine's file system). `beside` is another
        directory of the same broker; both share open files and deletions, so that logs can move between them.
        Raises `LogDirectoryError` if the directory is in use or belongs to another broker, and OSError.
        """
        self.path = path
        self.deletions: DelayedDeletions = (
            DelayedDeletions(files or OpenFiles()) if beside is None else beside.deletions
        )
        """The files of deleted logs and segments, which are removed later."""
        self.files = self.deletions.files
        path.mkdir(parents=True, exist_ok=True)
        self._lock = lock_directory(path) if files is None else None
        try:
            self._check_identity(cluster_id, broker_id)
            self.clean_shutdown_epoch = self._take_clean_shutdown()
            self._high_watermarks = _offsets_or_none(path / HIGH_WATERMARK_FILE)
            self._log_starts = _offsets_or_none(path / LOG_START_OFFSET_CHECKPOINT_FILE)
            self.recovery_points = _offsets_or_none(path / RECOVERY_POINT_CHECKPOINT_FILE)
            """The recovery point of each log when the directory was opened."""
            self.cleaner_offsets = _offsets_or_none(path / CLEANER_OFFSET_CHECKPOINT_FILE)
            """The first dirty offsets of compacted logs when the directory was opened."""
        except BaseException:
            self.close()
            raise

    def _check_identity(self, cluster_id: str, broker_id: int) -> None:
        path = self.path / META_PROPERTIES
        if not path.exists():
            log_name = first_log(self.path)
            if log_name is not None:
                raise LogDirectoryError(
                    f"{path} is missing, but there is {log_name}: put the file back, or use another directory"
                )
            import uuid  # noqa: PLC0415 - only a new directory needs it

            directory_id = uuid_text(uuid.uuid4().bytes)
            escaped_id = re.sub(r"[\\=:#!]", r"\\\g<0>", cluster_id)
            text = f"#\ncluster.id={escaped_id}\ndirectory.id={directory_id}\nnode.id={broker_id}\nversion=1\n"
            temporary = path.with_name(f"{path.name}.tmp")
            temporary.write_bytes(text.encode())
            self.files.sync(temporary)
            self.files.close(temporary)
            temporary.replace(path)
            return
        properties = _read_properties(path)
        for name, expected in (("version", "1"), ("cluster.id", cluster_id), ("node.id", str(broker_id))):
            if properties.get(name) != expected:
                raise LogDirectoryError(
                    f"{path} has {name}={properties.get(name)}, but expected is {name}={expected}: "
                    "the directory belongs to another broker, or the file is damaged"
                )

    def _take_clean_shutdown(self) -> int | None:
        """Return the epoch of a broker that shut down cleanly, None after a kill, and remove the file."""
        path = self.path / CLEAN_SHUTDOWN
        if not path.exists():
            return None
        text = path.read_text("utf-8", "replace")
        path.unlink()
        try:
            return int(json.loads(text)["brokerEpoch"])
        except (ValueError, KeyError, TypeError):  # as in Kafka, the epoch is then unknown
            return -1

    def write_clean_shutdown(self, broker_epoch: int) -> None:
        """Record that a broker of that epoch has closed every log."""
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        replace_file(self.path / CLEAN_SHUTDOWN, content.encode())

    # -- logs -----------------------------------------------------------------------------------

    def logs(self) -> Iterator[tuple[TopicPartition, bytes | None, FileStorage]]:
        """Yield partition, topic id and files of each log in the directory.

        The id is None if `partition.metadata` is damaged or unreadable.
        """
        for directory in sorted(self.path.iterdir(), key=str):
            if directory.name.endswith(DELETE_DIR_SUFFIX):
                self.deletions.delete_directory(directory)
                continue
            if directory.name.endswith(FUTURE_DIR_SUFFIX):
                continue
            metadata = directory / PARTITION_METADATA
            with suppress(OSError):  # it exists, but cannot be read
                if not metadata.exists():
                    continue
                if not metadata.read_bytes().strip(b"\0") and self._was_never_flushed(directory):
                    # Power was lost before the first flush, which begins with this file.
                    log.warning("log_never_flushed", directory=str(directory))
                    FileStorage(directory, self.deletions).delete()
                    continue
            topic, _, number = directory.name.rpartition("-")
            topic_partition = TopicPartition(topic, int(number))
            storage = self.open_log(topic_partition)
            yield topic_partition, storage.topic_id, storage

    def _was_never_flushed(self, directory: StoragePath) -> bool:
        topic, _, number = directory.name.rpartition("-")
        recovery_point = self.recovery_points.get(TopicPartition(topic, int(number)), 0)
        return self.clean_shutdown_epoch is None and recovery_point == 0

    def new_log(self, topic_partition: TopicPartition) -> FileStorage:
        """Return the files of a new log; call `create` on them."""
        return FileStorage(self.log_path(topic_partition), self.deletions)

    def finish_moves(self, is_elsewhere: Callable[[str], bool]) -> None:
        """Turn each copy left by a killed broker into a log; delete it if `is_elsewhere(name)`."""
        for directory in list(self.path.glob(f"*{FUTURE_DIR_SUFFIX}")):
            name = directory.name.rpartition(".")[0]
            if is_elsewhere(name):
                self.files.remove_tree(directory)
            else:
                directory.rename(self.path / name)

    def log_path(self, topic_partition: TopicPartition) -> StoragePath:
        """Return the path of that log in this directory."""
        return self.path / f"{topic_partition.topic}-{topic_partition.partition}"

    def open_log(self, topic_partition: TopicPartition) -> FileStorage:
        """Return the files of an existing log."""
        return FileStorage(
            self.log_path(topic_partition),
            self.deletions,
            high_watermark=self._high_watermarks.get(topic_partition, 0),
            log_start_offset=self._log_starts.get(topic_partition, 0),
            recovery_point=self.recovery_points.get(topic_partition, 0),
            was_closed=self.clean_shutdown_epoch is not None,
        )

    def close(self) -> None:
        """Close all files and release the lock."""
        self.files.close_all()
        if self._lock is not None:
            close_descriptor(self._lock)


def lock_directory(directory: StoragePath) -> int:
    """Lock the directory and return the descriptor that holds the lock.

    The lock excludes Java brokers too. Raises `LogDirectoryError` if the directory is locked.
    Linux separates two kinds of locks, so both are taken: one against Java, one against other clusters of
    this process. On other systems (macOS) each kind sees the other, even within one process.
    """
    import fcntl  # noqa: PLC0415 - only for data on disk: Windows does not have it

    path = directory / LOCK_FILE
    descriptor = open_descriptor(str(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if sys.platform == "linux":
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        close_descriptor(descriptor)
        raise LogDirectoryError(
            f"cannot lock {path}: another process or cluster uses this directory; stop it, or use another directory"
        ) from None
    return descriptor


def first_log(directory: StoragePath) -> str | None:
    """Return the name of a log in the directory, None if there is none.

    A log is a directory with a topic id or a segment, which every log has from its creation on. Unreadable
    directories are ignored.
    """
    for path in sorted(directory.iterdir(), key=str):
        if path.name.rpartition("-")[2].isdecimal():
            with suppress(PermissionError):
                if (path / PARTITION_METADATA).exists() or any(path.glob("*.log")):
                    return path.name
    return None


def _offsets_or_none(path: StoragePath) -> dict[TopicPartition, int]:
    """Return the offsets of a checkpoint; a damaged file counts as missing."""
    try:
        return read_offsets(path)
    except ValueError as error:
        log.warning("checkpoint_reset", file=str(path), why=str(error))
        return {}


def _read_properties(path: StoragePath) -> dict[str, str]:
    lines = path.read_text("utf-8", "replace").splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): re.sub(r"\\(.)", r"\1", value.strip()) for name, _, value in pairs}

"""Deleted files, which stay on disk for a delay; mirrors the tasks `delete-file` and `kafka-delete-logs`.

    00000000000000000000.log.deleted                       of a segment, for `file.delete.delay.ms`
    topic-0.5b2bfb1a36174a9d9c8d0c7b7e0a3c11-delete/       of a partition, for `log.segment.delete.delay.ms`

Readers of a deleted file can continue. The delay ends with the broker's process: at the next start, `.deleted`
files are removed at once, and the delay of `-delete` directories restarts, as in Kafka.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from broker_sim.log.storage.file_system import FileSystem, StoragePath
    from broker_sim.runtime.process import CallLater

DELETED_SUFFIX: Final = ".deleted"
DELETE_DIR_SUFFIX: Final = "-delete"
FUTURE_DIR_SUFFIX: Final = "-future"
LONGEST_NAME: Final = 255
DEFAULT_DELAY_MS: Final = 60_000
LONGEST_DELAY_MS: Final = 1 << 40
"""Longest timer delay, 34 years; files with a longer delay are removed at the next start."""

log = get_logger(__name__)


def delete_dir(directory: StoragePath) -> StoragePath:
    """Return a new path for the directory of a deleted log, within the length limit of file systems.

    Instead of Kafka's random id it has the first unused number, so that runs are repeatable.
    """
    topic, _, partition = directory.name.rpartition("-")
    for number in count():
        end = f"-{partition}.{number:032x}{DELETE_DIR_SUFFIX}"
        free = directory.with_name(topic[: LONGEST_NAME - len(end)] + end)
        if not free.exists():
            return free
    raise AssertionError("numbers do not end")


class DelayedDeletions:
    """Deleted files that are still on a broker's disk. Thread rule: only the scheduler's thread."""

    __slots__ = ("_call_later", "_delays_ms", "directory_delay_ms", "files")

    def __init__(self, files: FileSystem) -> None:
        self.files = files
        self.directory_delay_ms = DEFAULT_DELAY_MS
        """Delay before the directory of a deleted log is removed, `log.segment.delete.delay.ms` of the broker."""
        self._call_later: CallLater | None = None
        self._delays_ms: dict[StoragePath, int | None] = {}
        """The renamed paths with their delays; None for directories, whose delay is `directory_delay_ms`."""

    def start(self, call_later: CallLater, directory_delay_ms: int) -> None:
        """Start deleting in a broker's new process, including files left by earlier processes."""
        self.directory_delay_ms = directory_delay_ms
        self._call_later = call_later
        for path in self._delays_ms:
            self._schedule(path)

    def delete_file(self, path: StoragePath, delay_ms: int) -> StoragePath:
        """Rename the file, and delete it after the delay; return its new name. Raises OSError."""
        deleted = self._free_name(path)
        try:
            path.rename(deleted)
        except FileNotFoundError:
            self.files.close(path)  # a new file of this name is a different file
            raise
        self.files.renamed(path, deleted)
        self._delays_ms[deleted] = delay_ms
        self._schedule(deleted)
        return deleted

    def _free_name(self, path: StoragePath) -> StoragePath:
        """Return the name with the suffix, and a number if an earlier file of that name still exists."""
        deleted = path.with_name(path.name + DELETED_SUFFIX)
        numbers = count(1)
        while deleted in self._delays_ms:
            deleted = path.with_name(f"{path.name}.{next(numbers)}{DELETED_SUFFIX}")
        return deleted

    def delete_directory(self, directory: StoragePath) -> None:
        """Delete an already renamed directory after the delay."""
        self._delays_ms[directory] = None
        self._schedule(directory)

    def _schedule(self, path: StoragePath) -> None:
        if self._call_later is None:
            return
        delay_ms = self._delays_ms[path]
        if delay_ms is None:
            delay_ms = self.directory_delay_ms
        if delay_ms <= LONGEST_DELAY_MS:
            self._call_later(delay_ms, self._delete, path)

    def _delete(self, path: StoragePath) -> None:
        """Delete a path unless it is gone; a failed deletion is retried at the next start."""
        if path not in self._delays_ms:
            return
        is_directory = self._delays_ms[path] is None
        try:
            with suppress(FileNotFoundError):
                if is_directory:
                    self.files.close_in(path)
                    self.files.remove_tree(path)
                else:
                    self.files.close(path)
                    path.unlink()
        except OSError as error:
            log.warning("delete_failed", file=str(path), why=error.strerror or str(error))
        else:
            del self._delays_ms[path]

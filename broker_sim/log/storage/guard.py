"""Takes a log offline at the first error of its files; mirrors `LogDirFailureChannel`.

    with guard.io("roll a segment"):      an OSError in here takes the log offline
        ...                               and is raised as KAFKA_STORAGE_ERROR

The first error is logged, and `on_failed` is called. From then on every use of the files raises the same error until
the broker is restarted, because the state of the disk is unknown.

Deliberate difference: Kafka takes all logs of the directory offline, and a broker without another directory
exits. Here each log fails alone, as if it had its own directory.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.log.storage.file_system import StoragePath

log = get_logger(__name__)


class StorageGuard:
    """Whether the files of one log can be used. Thread rule: only the scheduler's thread."""

    __slots__ = ("directory", "is_failed", "on_failed")

    def __init__(self, directory: StoragePath) -> None:
        self.directory = directory
        self.is_failed = False
        self.on_failed: Callable[[], object] = lambda: None

    @contextmanager
    def io(self, action: str) -> Iterator[None]:
        """Raise KAFKA_STORAGE_ERROR for an OSError in the block, or for an earlier one."""
        self.check()
        try:
            yield
        except OSError as error:
            raise self.failed(action, error) from error

    def check(self) -> None:
        """Raise KAFKA_STORAGE_ERROR if the files have failed."""
        if self.is_failed:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log {self.directory} is offline")

    def failed(self, action: str, error: OSError) -> ApiError:
        """Take the log offline; return the error to raise."""
        why = error.strerror or str(error)
        if not self.is_failed:
            self.is_failed = True
            log.error("log_offline", directory=str(self.directory), action=action, why=why)
            self.on_failed()
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot {action} in {self.directory}: {why}")


@contextmanager
def suppress_storage_error() -> Iterator[None]:
    """Suppress KAFKA_STORAGE_ERROR: the log is already offline, and its listeners have been called."""
    try:
        yield
    except ApiError as error:
        if error.error_code is not ErrorCode.KAFKA_STORAGE_ERROR:
            raise

"""The directory in which a cluster keeps its data across restarts.

DIR/.lock                 locked by the process that uses the directory
DIR/controller.metadata   topics, configurations, ISRs, epochs, producer ids, SCRAM users
DIR/broker-1/ ...         the log directory of each broker, as Kafka's
DIR/broker-1-2/ ...       the second log directory of a broker with several `log.dirs`
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_sim.controller import MetadataStore, ProducerIdControlManager
from broker_sim.errors import ApiError, ConfigError
from broker_sim.log import LogDirectory, first_log, lock_directory
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.runtime.system import close_descriptor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from broker_sim.controller import StoredMetadata
    from broker_sim.log import LogManager, PartitionLog
    from broker_sim.metadata import MetadataImage

METADATA_FILE = "controller.metadata"
WRITABLE_ADVICE: Final = "make the data directory writable for this process, or use another one"
ROOM_ADVICE: Final = "free some space there, or use a data directory on another disk"
ADVICE: Final = {
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), WRITABLE_ADVICE),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), ROOM_ADVICE),
}
KAFKA_FILES: Final = ("meta.properties", "__cluster_metadata-0")
"""Files that show that a directory is the log directory of a real broker."""


class DataDirectory:
    """A cluster's directory, locked from `open` to `close`. Thread rule: the cluster's thread."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metadata = MetadataStore(self.path / METADATA_FILE)
        self.restored: StoredMetadata | None = None
        """The metadata of an earlier cluster, None in a new directory."""
        self._producer_ids = ProducerIdControlManager(keep=self.metadata.write_next_producer_id)
        self._logs: dict[int, list[LogDirectory]] = {}
        self._lock: int | None = None
        self._unseen: set[str] = set()
        """Log directories that may contain producer ids the metadata does not know."""

    def open(self) -> None:
        """Create the directory if it is missing, lock it, and read the metadata.

        Raises ConfigError if another process uses it or its metadata is damaged, and OSError, with advice if the
        directory cannot be written.
        """
        with self._advice():
            self.path.mkdir(parents=True, exist_ok=True)
            self._check_foreign()
            self._lock = lock_directory(self.path)
            self.restored = self.metadata.load()
            if self.restored is None:
                self._check_lost_metadata()
        if self.restored is not None:
            self._producer_ids.skip(self.restored.next_producer_id - 1)
            if not self.restored.is_whole:
                self._unseen = {path.parent.name for path in self._identities()}

    def _check_foreign(self) -> None:
        """Raise ConfigError for the log directory of a real broker."""
        present = (name for name in KAFKA_FILES if (self.path / name).exists())
        name = next(present, None) or first_log(self.path)
        if name is not None:
            raise ConfigError(
                f"{self.path} is the log directory of a Kafka broker (it contains {name}), which broker-sim "
                "cannot use; choose another directory"
            )

    def _check_lost_metadata(self) -> None:
        """Raise ConfigError if there are logs of brokers without metadata."""
        brokers = sorted(path.parent.name for path in self._identities())
        if brokers:
            raise ConfigError(
                f"{self.path / METADATA_FILE} is missing, but there is {brokers[0]}: put the file "
                "back, or use another directory"
            )

    def _identities(self) -> Iterable[Path]:
        """Return the `meta.properties` of all brokers in the directory, former ones included."""
        return self.path.glob("broker-*/meta.properties")

    def open_logs(self, counts: Mapping[int, int], cluster_id: str) -> dict[int, list[LogDirectory]]:
        """Open the log directories of each broker; `counts` is their number by broker id (0 counts as 1).

        Raises ConfigError for a directory that is in use or belongs to another broker, and OSError.
        """
        with self._advice():
            for broker_id, count in counts.items():
                paths = [self.path / name for name in directory_names(broker_id, count)]
                directories = self._logs[broker_id] = [LogDirectory(paths[0], cluster_id, broker_id)]
                for path in paths[1:]:
                    directories.append(LogDirectory(path, cluster_id, broker_id, beside=directories[0]))
        return self._logs

    def reopen_logs(self, broker_id: int, count: int, cluster_id: str) -> list[LogDirectory]:
        """Open the current files of a broker that starts again. Raises as `open_logs`."""
        self.close_logs(broker_id)
        self.open_logs({broker_id: count}, cluster_id)
        return self._logs[broker_id]

    def close_logs(self, broker_id: int) -> None:
        """Close the files of a broker; does nothing if they are closed."""
        for directory in self._logs.pop(broker_id, ()):
            directory.close()

    def producer_ids(self) -> ProducerIdControlManager:
        """Return the source of producer ids, each unique in the life of the directory."""
        return self._producer_ids

    def skip_known_producer_ids(self, broker_id: int, logs: LogManager) -> None:
        """Skip the producer ids in recovered logs, if the metadata may have lost its last changes."""
        own = {name for name in self._unseen if name.split("-")[1] == str(broker_id)}
        if own:
            self._producer_ids.skip(highest_producer_id(logs))
            self.metadata.next_producer_id = self._producer_ids.next_producer_id
            self._unseen -= own

    def begin(self, image: MetadataImage) -> None:
        """Store the metadata from now on, beginning with this image. Raises OSError."""
        with self._advice():
            self.metadata.begin(image, self._producer_ids.next_producer_id)

    @contextmanager
    def _advice(self) -> Iterator[None]:
        """Add advice to errors of a directory that is read-only, full or inaccessible."""
        try:
            yield
        except OSError as error:
            advice = ADVICE.get(error.errno or 0)
            if advice is None:
                raise
            name = self.path if error.filename is None else error.filename
            raise OSError(error.errno, f"{error.strerror}; {advice}", str(name)) from error

    def close(self) -> None:
        """Close all files and release the locks; does nothing the second time."""
        self.metadata.close(is_whole=not self._unseen)
        logs, self._logs = self._logs, {}
        for directories in logs.values():
            for directory in directories:
                directory.close()
        if self._lock is not None:
            close_descriptor(self._lock)
            self._lock = None


def directory_names(broker_id: int, count: int) -> list[str]:
    """Return the names of a broker's log directories: broker-1, broker-1-2, broker-1-3, ..."""
    first = f"broker-{broker_id}"
    return [first, *(f"{first}-{number}" for number in range(2, count + 1))]


def highest_producer_id(logs: LogManager) -> int:
    """Return the highest producer id in these logs, -1 without any.

    Logs of transactions are read as a whole; for all others the producers' states suffice, because an id
    without a state is new to the log.
    """
    highest = NO_PRODUCER_ID
    for log in logs.logs:
        highest = max(highest, *log.producer_state.active_producers, NO_PRODUCER_ID)
        if log.topic_partition.topic == TRANSACTION_STATE_TOPIC:
            highest = max(highest, *_of_transactions(log), NO_PRODUCER_ID)
    return highest


def _of_transactions(log: PartitionLog) -> Iterator[int]:
    from broker_sim.transaction.records import TransactionLogValue, serde  # noqa: PLC0415 - only after transactions

    for segment in log.segments:
        for header, batch in segment.batches_from(segment.base_offset):
            if header.is_control:
                continue
            try:
                for _, record in serde.decode_batch(batch):
                    value = record.value
                    if isinstance(value, TransactionLogValue):
                        yield value.producer_id
                        yield value.next_producer_id
            except (ApiError, ProtocolError):
                continue  # the coordinator reports it when it loads the batch

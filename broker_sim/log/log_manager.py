"""The logs of one broker; mirrors `LogManager`.

A log manager outlives the broker's process, as a log directory does: a restarted broker finds its
logs here again, after SIGKILL with the high watermarks and log starts of the last checkpoint, after a
clean shutdown with the last ones. With a `LogDirectory` the logs are files, and are found again by
another process too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.config import TopicConfig
from broker_sim.log.cleaner.manager import LogCleanerManager
from broker_sim.log.memory import MemoryAccount, unlimited_memory
from broker_sim.log.partition_log import PartitionLog
from broker_sim.log.producer_state_config import ProducerStateManagerConfig
from broker_sim.log.storage import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.config import BrokerConfig
    from broker_sim.log.log_offsets import LogOffsets
    from broker_sim.log.memory import ReplicaMemory
    from broker_sim.log.storage import LogDirectory, LogStorage
    from broker_sim.metadata.topic_partition import TopicPartition
    from purgatory import Clock

__all__ = ["LogManager"]


class LogManager:
    """Logs by partition; each belongs to one topic id."""

    def __init__(
        self,
        clock: Clock,
        producers: ProducerStateManagerConfig | None = None,
        memory: MemoryAccount | None = None,
        directory: LogDirectory | None = None,
    ) -> None:
        """Open the logs of the directory, if there is one; call `recover` before they are used."""
        self._clock = clock
        self._memory = memory or MemoryAccount()
        self.producers = producers or ProducerStateManagerConfig()
        self._logs: dict[TopicPartition, tuple[bytes, PartitionLog]] = {}
        self.changed: set[LogOffsets] = set()
        """The logs whose offsets have moved since this was cleared."""
        self.cleaner = LogCleanerManager(clock)
        """Which compacted logs are to be cleaned, and from where on."""
        self.clean_shutdown_epoch = -1
        """The epoch of the broker that last called `shutdown`, -1 if none has (KIP-966)."""
        self.directory = directory
        if directory is not None:
            self._load(directory)

    def _load(self, directory: LogDirectory) -> None:
        if directory.clean_shutdown_epoch is not None:
            self.clean_shutdown_epoch = directory.clean_shutdown_epoch
        for topic_partition, topic_id, storage in directory.logs():
            log = self._open(topic_partition, TopicConfig(), storage, unlimited_memory)
            self._logs[topic_partition] = (topic_id, log)

    def _open(
        self,
        topic_partition: TopicPartition,
        config: TopicConfig,
        storage: LogStorage,
        open_memory: Callable[[TopicPartition], ReplicaMemory],
    ) -> PartitionLog:
        log = PartitionLog(
            topic_partition,
            config,
            self._clock,
            producers=self.producers,
            memory=open_memory(topic_partition),
            changed=self.changed,
            storage=storage,
        )
        log.on_truncated = partial(self.cleaner.truncated, topic_partition)
        return log

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take what a changed dynamic configuration of the broker says of producers."""
        self.producers.producer_id_expiration_ms = config.producer_id_expiration_ms
        self.producers.transaction_verification_enabled = (
            config.transaction_partition_verification_enable
        )

    def get_or_create(
        self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig
    ) -> PartitionLog:
        """Return the partition's log; a log of an older topic of the same name is replaced."""
        found = self._logs.get(topic_partition)
        if found is not None and found[0] == topic_id:
            return found[1]
        self.delete(topic_partition)
        if self.directory is None:
            log = self._open(
                topic_partition,
                config,
                MemoryStorage(),
                lambda key: self._memory.open_replica(key, topic_id),
            )
        else:
            storage = self.directory.create_log(topic_partition, topic_id)
            log = self._open(topic_partition, config, storage, unlimited_memory)
        self._logs[topic_partition] = (topic_id, log)
        return log

    @property
    def logs(self) -> Iterable[PartitionLog]:
        """All logs, in the order in which they were made."""
        return (log for _, log in self._logs.values())

    def get(self, topic_partition: TopicPartition, topic_id: bytes) -> PartitionLog | None:
        """Return the log of that partition and topic id, or None."""
        found = self._logs.get(topic_partition)
        return found[1] if found is not None and found[0] == topic_id else None

    def delete(self, topic_partition: TopicPartition) -> None:
        """Delete the partition's log if there is one."""
        found = self._logs.pop(topic_partition, None)
        if found is not None:
            self.cleaner.forget(topic_partition)
            found[1].memory.close()
            found[1].storage.delete()
            self.changed.discard(found[1])

    def delete_strays(self, is_hosted: Callable[[TopicPartition, bytes], bool]) -> None:
        """Delete the logs that a restarted broker no longer hosts, by its first metadata."""
        for topic_partition, (topic_id, _) in list(self._logs.items()):
            if not is_hosted(topic_partition, topic_id):
                self.delete(topic_partition)

    def shutdown(self, broker_epoch: int) -> None:
        """Close every log, and keep the epoch as Kafka's file `.kafka_cleanshutdown` does."""
        for log in self.logs:
            log.close()
        self.clean_shutdown_epoch = broker_epoch
        self.checkpoint_offsets()
        if self.directory is not None:
            self.directory.write_clean_shutdown(broker_epoch)

    def recover(self) -> None:
        """Open all logs again: what was only in memory is lost or rebuilt."""
        if self.directory is not None:
            self.directory.remove_clean_shutdown()
        for log in self.logs:
            log.recover()

    def checkpoint_log_start_offsets(self) -> None:
        """Checkpoint the log start of every log, so that deleted records stay deleted after a kill.

        In a directory the recovery points are checkpointed too.
        """
        self.checkpoint_recovery_points()
        for log in self.logs:
            log.checkpoint_log_start_offset()
        if self.directory is not None:
            self.directory.write_log_starts(
                {key: log.storage.log_start_offset for key, (_, log) in self._logs.items()}
            )

    def checkpoint_high_watermarks(self) -> None:
        """Checkpoint the high watermarks; a broker that was killed continues from there."""
        for _, log in self._logs.values():
            log.checkpoint_high_watermark()
        if self.directory is not None:
            self.directory.write_high_watermarks(
                {key: log.storage.high_watermark for key, (_, log) in self._logs.items()}
            )

    def checkpoint_recovery_points(self) -> None:
        """Write into the directory up to where each log is known to be on the disk."""
        if self.directory is not None:
            self.directory.write_recovery_points(
                {key: log.storage.recovery_point for key, (_, log) in self._logs.items()}
            )

    def checkpoint_offsets(self) -> None:
        """Write all checkpoints."""
        self.checkpoint_log_start_offsets()
        self.checkpoint_high_watermarks()

    def delete_old_segments(self) -> None:
        """Apply the retention to every log but the compacted ones, for which the cleaner does it."""
        for log in self.logs:
            if not log.config.is_compacted:
                log.delete_old_segments()

    def reclaim(self) -> None:
        """Free at once what the next retention check and the next checkpoint would free."""
        for log in self.logs:
            log.delete_old_segments()
        self.checkpoint_log_start_offsets()

    def remove_expired_producers(self) -> None:
        """Forget producers that have written nothing for `producer.id.expiration.ms`."""
        now_ms = self._clock.wall_clock_ms()
        for log in self.logs:
            log.producer_state.remove_expired_producers(now_ms)

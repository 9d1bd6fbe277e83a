"""The logs of one broker: its disk; mirrors ``kafka.log.LogManager``.

It outlives the broker's process: a restarted broker finds its logs here again, as it would in its
log directory: after SIGKILL with the high watermarks of the last checkpoint, after a clean shutdown
with the last ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.config import TopicConfig
    from broker_sim.metadata.topic_partition import TopicPartition
    from purgatory import Clock

__all__ = ["LogManager"]


class LogManager:
    """Logs by partition, each belonging to a topic id."""

    def __init__(self, clock: Clock, producer_id_expiration_ms: int) -> None:
        self._clock = clock
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._logs: dict[TopicPartition, tuple[bytes, PartitionLog]] = {}
        self.clean_shutdown_epoch = -1
        """The epoch of the broker that last called `shutdown`, -1 if none has (KIP-966)."""

    def get_or_create(
        self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig
    ) -> PartitionLog:
        """Return the partition's log; one of an older topic of the same name is thrown away."""
        found = self._logs.get(topic_partition)
        if found is not None and found[0] == topic_id:
            return found[1]
        log = PartitionLog(
            topic_partition,
            config,
            self._clock,
            producer_id_expiration_ms=self._producer_id_expiration_ms,
        )
        self._logs[topic_partition] = (topic_id, log)
        return log

    def get(self, topic_partition: TopicPartition, topic_id: bytes) -> PartitionLog | None:
        """Return the log of that partition and topic id, or None."""
        found = self._logs.get(topic_partition)
        return found[1] if found is not None and found[0] == topic_id else None

    def delete(self, topic_partition: TopicPartition) -> None:
        """Throw a log away; nothing happens if there is none."""
        self._logs.pop(topic_partition, None)

    def delete_strays(self, is_hosted: Callable[[TopicPartition, bytes], bool]) -> None:
        """Throw away the logs that the first metadata of a new life no longer places here."""
        for topic_partition, (topic_id, _) in list(self._logs.items()):
            if not is_hosted(topic_partition, topic_id):
                self.delete(topic_partition)

    def shutdown(self, broker_epoch: int) -> None:
        """Close every log, and keep the epoch as Kafka's file `.kafka_cleanshutdown` does."""
        for _, log in self._logs.values():
            log.close()
        self.clean_shutdown_epoch = broker_epoch

    def recover(self) -> None:
        """Begin a new life: what was only in memory is lost or built anew."""
        for _, log in self._logs.values():
            log.recover()

    def delete_old_segments(self) -> None:
        """Apply the retention by time and size to every log."""
        for _, log in self._logs.values():
            log.delete_old_segments()

    def remove_expired_producers(self) -> None:
        """Forget producers that have written nothing for ``producer.id.expiration.ms``."""
        for _, log in self._logs.values():
            log.remove_expired_producers()

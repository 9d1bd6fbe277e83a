"""Makes a broker's partitions on the logs that it keeps, and deletes logs.

Part of `ReplicaManager.getOrCreatePartition` and `stopPartitions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.replica import Partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.log import LogManager
    from broker_sim.metadata import TopicState
    from broker_sim.metadata.cache import MetadataCache
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica import PendingIsr


class LocalPartitionStore:
    """The `PartitionStore` of one broker; mirrors what `Partition.apply` takes from its broker."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        logs: LogManager,
        metadata: MetadataCache,
        *,
        clock: Clock,
        submit_alter_partition: Callable[[Partition, PendingIsr], None],
        complete_delayed_requests: Callable[[TopicPartition], None],
    ) -> None:
        self._broker_id = broker_id
        self._config = config
        self._logs = logs
        self._metadata = metadata
        self._clock = clock
        self._submit_alter_partition = submit_alter_partition
        self._complete_delayed_requests = complete_delayed_requests

    def open_partition(self, topic_partition: TopicPartition, topic: TopicState) -> Partition:
        """Return the partition on its log, which may have survived a restart."""
        config = self._metadata.topic_config(topic)
        return Partition(
            topic_partition,
            topic.topic_id,
            self._broker_id,
            self._logs.get_or_create(topic_partition, topic.topic_id, config),
            config,
            clock=self._clock,
            replica_lag_time_max_ms=self._config.replica_lag_time_max_ms,
            metadata=self._metadata,
            submit_alter_partition=self._submit_alter_partition,
            complete_delayed_requests=self._complete_delayed_requests,
        )

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Delete the log of a deleted partition."""
        self._logs.delete(topic_partition)

"""One fetcher for every leader that this broker follows; mirrors `ReplicaFetcherManager`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.replica.fetcher import ReplicaFetcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.leader_endpoint import LeaderEndpoint
    from broker_sim.replica.partition import Partition
    from broker_sim.replica.replica_quota import ReplicaQuota
    from broker_sim.runtime.process import Process


class FetcherManager:
    """Starts and stops the replication of partitions, and moves it to new leaders."""

    def __init__(
        self,
        broker_id: int,
        process: Process,
        config: BrokerConfig,
        endpoint: LeaderEndpoint,
        *,
        broker_epoch: Callable[[], int],
        complete_delayed_fetches: Callable[[TopicPartition], object],
        quota: ReplicaQuota,
    ) -> None:
        self._broker_id = broker_id
        self._process = process
        self._config = config
        self._endpoint = endpoint
        self._broker_epoch = broker_epoch
        self._complete_delayed_fetches = complete_delayed_fetches
        self._quota = quota
        self._fetchers: dict[int, ReplicaFetcher] = {}

    def follow(self, partition: Partition) -> None:
        """Fetch the partition from its current leader only."""
        self.unfollow(partition.topic_partition)
        fetcher = self._fetchers.get(partition.leader_id)
        if fetcher is None:
            fetcher = self._fetchers[partition.leader_id] = ReplicaFetcher(
                partition.leader_id,
                self._process,
                self._config,
                self._endpoint,
                replica_id=self._broker_id,
                broker_epoch=self._broker_epoch,
                complete_delayed_fetches=self._complete_delayed_fetches,
                quota=self._quota,
            )
        fetcher.add(partition)

    def unfollow(self, topic_partition: TopicPartition) -> None:
        """Stop fetching the partition."""
        for fetcher in self._fetchers.values():
            fetcher.remove(topic_partition)

    def shutdown_idle_fetchers(self) -> None:
        """Remove the fetchers without partitions."""
        for leader_id, fetcher in list(self._fetchers.items()):
            if not len(fetcher):
                fetcher.shutdown()
                del self._fetchers[leader_id]

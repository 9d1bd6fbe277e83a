"""The purgatories of one broker.

Mirrors `kafka.cluster.DelayedOperations` (which purgatories the progress of a partition can complete)
and the purgatories that `ReplicaManager` makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.protocol.uuids import uuid_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim_purgatory import DelayedOperationPurgatory

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.delayed_delete_records import DelayedDeleteRecords
    from broker_sim.replica.delayed_elect_leader import DelayedElectLeader
    from broker_sim.replica.delayed_fetch import DelayedFetch
    from broker_sim.replica.delayed_produce import DelayedProduce
    from broker_sim.runtime.delayed_request import DelayedRequest

DEFAULT_PURGE_INTERVAL: Final = 1000
"""Kafka's default for purgatories without a configuration of their own, in operations."""


class DelayedShareFetchGroupKey(NamedTuple):
    """Key of a share partition, whose records may become available again."""

    group_id: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"groupId={self.group_id}, topicId={uuid_text(self.topic_id)}, partition={self.partition}"


class DelayedShareFetchPartitionKey(NamedTuple):
    """Key of a partition for all share groups, whose high watermark may move."""

    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"topicId={uuid_text(self.topic_id)}, partition={self.partition}"


class Purgatories:
    """All purgatories of one broker, in the order in which they were made.

    `make(name, purge_interval)` returns a new purgatory for this broker. Share fetches are keyed by the two
    classes above, the other four by `TopicPartition`; a coordinator gets its own purgatory from `named`.
    """

    __slots__ = ("_all", "_make", "delete_records", "elect_leader", "fetch", "produce", "share_fetch")

    def __init__(self, make: Callable[[str, int], DelayedOperationPurgatory[Any]], config: BrokerConfig) -> None:
        self._make = make
        self._all: dict[str, DelayedOperationPurgatory[Any]] = {}
        self.produce: DelayedOperationPurgatory[DelayedProduce] = self.named(
            "Produce", config.producer_purgatory_purge_interval_requests
        )
        self.fetch: DelayedOperationPurgatory[DelayedFetch] = self.named(
            "Fetch", config.fetch_purgatory_purge_interval_requests
        )
        self.delete_records: DelayedOperationPurgatory[DelayedDeleteRecords] = self.named(
            "DeleteRecords", config.delete_records_purgatory_purge_interval_requests
        )
        self.elect_leader: DelayedOperationPurgatory[DelayedElectLeader] = self.named("ElectLeader")
        self.share_fetch: DelayedOperationPurgatory[DelayedRequest] = self.named(
            "ShareFetch", config.share_fetch_purgatory_purge_interval_requests
        )

    def named(self, name: str, purge_interval: int = DEFAULT_PURGE_INTERVAL) -> DelayedOperationPurgatory[Any]:
        """Return the broker's purgatory of that name; the first call makes it."""
        purgatory = self._all.get(name)
        if purgatory is None:
            purgatory = self._all[name] = self._make(name, purge_interval)
        return purgatory

    def __iter__(self) -> Iterator[DelayedOperationPurgatory[Any]]:
        return iter(self._all.values())

    def may_complete(self, key: TopicPartition, hw_increased: bool) -> bool:
        """Whether an append to the partition, which may have moved its high watermark, may complete an operation."""
        if self.fetch.is_watched(key):
            return True
        return hw_increased and (
            self.produce.is_watched(key) or self.delete_records.is_watched(key) or self.share_fetch.num_delayed() > 0
        )

    def check_and_complete_all(self, key: TopicPartition, topic_id: bytes) -> None:
        """Try all operations that wait for the partition's high or low watermark."""
        self.fetch.check_and_complete(key)
        self.produce.check_and_complete(key)
        self.delete_records.check_and_complete(key)
        self._check_and_complete_share_fetch(key, topic_id)

    def check_and_complete_not_leader(self, key: TopicPartition, topic_id: bytes) -> None:
        """Try all operations that end when this broker stops leading or hosting the partition."""
        self.produce.check_and_complete(key)
        self.fetch.check_and_complete(key)
        self._check_and_complete_share_fetch(key, topic_id)

    def _check_and_complete_share_fetch(self, key: TopicPartition, topic_id: bytes) -> None:
        share_fetch = self.share_fetch
        if share_fetch.num_delayed():
            watched = DelayedShareFetchPartitionKey(topic_id, key.partition)
            share_fetch.check_and_complete(watched)

    def shutdown(self) -> None:
        """Stop all purgatories; parked operations get no response, as in a broker that is killed."""
        for purgatory in self._all.values():
            purgatory.shutdown()

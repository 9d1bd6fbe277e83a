"""The purgatories that a partition's progress can complete; mirrors `kafka.cluster.DelayedOperations`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.delayed_delete_records import DelayedDeleteRecords
    from broker_sim.replica.delayed_elect_leader import DelayedElectLeader
    from broker_sim.replica.delayed_fetch import DelayedFetch
    from broker_sim.replica.delayed_produce import DelayedProduce
    from purgatory import DelayedOperationPurgatory

__all__ = ["Purgatories"]


class Purgatories:
    """One broker's purgatories; every one is keyed by `TopicPartition`."""

    __slots__ = ("delete_records", "elect_leader", "fetch", "produce")

    def __init__(
        self,
        produce: DelayedOperationPurgatory[DelayedProduce],
        fetch: DelayedOperationPurgatory[DelayedFetch],
        delete_records: DelayedOperationPurgatory[DelayedDeleteRecords],
        elect_leader: DelayedOperationPurgatory[DelayedElectLeader],
    ) -> None:
        self.produce = produce
        self.fetch = fetch
        self.delete_records = delete_records
        self.elect_leader = elect_leader

    def __iter__(self) -> Iterator[DelayedOperationPurgatory[Any]]:
        return iter((self.produce, self.fetch, self.delete_records, self.elect_leader))

    def check_and_complete_all(self, key: TopicPartition) -> None:
        """Try everything that waits for the partition's high or low watermark."""
        self.fetch.check_and_complete(key)
        self.produce.check_and_complete(key)
        self.delete_records.check_and_complete(key)

    def check_and_complete_not_leader(self, key: TopicPartition) -> None:
        """Try everything that a partition's new role or its deletion ends."""
        self.produce.check_and_complete(key)
        self.fetch.check_and_complete(key)

    def shutdown(self) -> None:
        """Stop the reapers and timers; what is parked stays unanswered, as in a broker that goes."""
        for purgatory in self:
            purgatory.shutdown()

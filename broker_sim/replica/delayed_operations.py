"""The purgatories that a partition's progress can complete; mirrors ``kafka.cluster.DelayedOperations``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker_sim.replica.delayed_delete_records import DelayedDeleteRecords
    from broker_sim.replica.delayed_elect_leader import DelayedElectLeader
    from broker_sim.replica.delayed_fetch import DelayedFetch
    from broker_sim.replica.delayed_produce import DelayedProduce
    from broker_sim.topic_partition import TopicPartition
    from purgatory import DelayedOperationPurgatory

__all__ = ["Purgatories"]


class Purgatories(NamedTuple):
    """One broker's purgatories; every one is keyed by `TopicPartition`."""

    produce: DelayedOperationPurgatory[DelayedProduce]
    fetch: DelayedOperationPurgatory[DelayedFetch]
    delete_records: DelayedOperationPurgatory[DelayedDeleteRecords]
    elect_leader: DelayedOperationPurgatory[DelayedElectLeader]

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

"""Exceptions for coordinators in a random run: when they may contradict acknowledged facts.

Groups: a deposed coordinator that does not know it answers as before. And a new coordinator may return older offsets
than were acknowledged: it has loaded its whole log, but an OffsetFetch without `require_stable` shows only what is
below the high watermark, which it learned one fetch late as a follower. It shows everything once the in-sync replicas
have fetched up to the start of its own epoch. Mirrors `CoordinatorLoaderImpl` and
`OffsetMetadataManager.fetchOffsets`; a real Kafka 4.3.1 was seen to do the same for nine seconds.

Transactions: a new coordinator loads its log to the end, even beyond the high watermark, and acts on it at once: it
sends the markers of a decision, and answers AddPartitionsToTxn for a partition that is already in the transaction.
Mirrors `TransactionStateManager.loadTransactionMetadata`. If an in-sync replica without these records leads next, it
continues from the state before them. It may decide a transaction again, with markers that are refused where the other
coordinator's markers exist, and does not know of a partition that was written to: such a transaction is read in part,
or never ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import GROUPS, TRANSACTIONS
from broker_sim.chaos.faults.cluster_faults import COORDINATED
from broker_sim.chaos.random_run.checks.batches import batches_of

if TYPE_CHECKING:
    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster

GROUPS_PARTITION: Final = COORDINATED[GROUPS]
"""The partition of all groups of a random run."""
EXCUSED: Final = {
    "aborted-transactions-are-not-read",
    "committed-offsets-stay",
    "committed-records-are-read",
    "committed-transactions-are-read",
    "no-offset-without-its-records",
    "open-transactions-are-not-read",
    "transactions-end",
}
"""Invariants that may be violated once a coordinator lacks records that an earlier one had loaded."""


def newest_coordinator(cluster: VirtualCluster, broker_id: int) -> tuple[int, int] | None:
    """Return the broker and its leader epoch if it coordinates the groups and knows that; otherwise None."""
    broker = cluster.nodes.brokers.get(broker_id)
    newest = cluster.nodes.controller.image.partition(GROUPS_PARTITION)
    partition = None if broker is None else broker.image.partition(GROUPS_PARTITION)
    if newest is None or partition is None or partition.leader != broker_id:
        return None
    if (partition.leader, partition.leader_epoch) != (newest.leader, newest.leader_epoch):
        return None
    return partition.leader, partition.leader_epoch


def informed_coordinator(cluster: VirtualCluster, broker_id: int) -> tuple[int, int] | None:
    """Return `newest_coordinator`, but None as long as it may return older offsets than were acknowledged."""
    coordinator = newest_coordinator(cluster, broker_id)
    if coordinator is None:
        return None
    partition = cluster.nodes.brokers[broker_id].replica_manager.partitions.get(GROUPS_PARTITION)
    begin = None if partition is None else partition.leader_epoch_start_offset
    if partition is None or begin is None or partition.log.high_watermark < begin:
        return None
    return coordinator


class LostLoads:
    """Detects transaction coordinators that loaded less than an earlier coordinator of the run."""

    def __init__(self) -> None:
        self.are_there = False
        self._led: set[tuple[Broker, int]] = set()
        self._loaded: list[bytes] = []

    def excuse(self, invariant: str) -> bool:
        """Whether a violation may come from a coordinator without the records that an earlier one had loaded."""
        return self.are_there and invariant in EXCUSED

    def look_at(self, broker: Broker) -> None:
        """Inspect the log that a broker loads if it was elected; called after its start and after new metadata."""
        partition = broker.replica_manager.partitions.get(COORDINATED[TRANSACTIONS])
        if partition is None or not partition.is_leader:
            return
        if (broker, partition.leader_epoch) not in self._led:
            self._led.add((broker, partition.leader_epoch))
            loaded = [bytes(batch) for batch in batches_of(partition.log)]
            if loaded[: len(self._loaded)] != self._loaded:
                self.are_there = True
            self._loaded = loaded

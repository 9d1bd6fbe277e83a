"""Which coordinator of groups a client of a random run may take at its word.

A deposed coordinator that has not heard of it answers as before. And a new one may tell older offsets
than were acknowledged: it has loaded its whole log, but an OffsetFetch without `require_stable` shows what
is below the high watermark, and as a follower it heard of that one fetch late. It shows all once the
in-sync replicas have fetched from it as far as its own epoch begins. Mirrors `CoordinatorLoaderImpl` and
`OffsetMetadataManager.fetchOffsets`; a real Kafka 4.3.1 was seen to do the same for nine seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import GROUPS
from broker_sim.chaos.faults.roles import COORDINATED

if TYPE_CHECKING:
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster

GROUPS_PARTITION: Final = COORDINATED[GROUPS]
"""The partition that all groups of a random run are in."""


def newest_coordinator(cluster: VirtualCluster, broker_id: int) -> tuple[int, int] | None:
    """Return the broker and its leader epoch if it coordinates the groups, and knows it; else None."""
    broker = cluster.nodes.brokers.get(broker_id)
    newest = cluster.nodes.controller.image.partition(GROUPS_PARTITION)
    known = None if broker is None else broker.image.partition(GROUPS_PARTITION)
    if newest is None or known is None or known.leader != broker_id:
        return None
    if (known.leader, known.leader_epoch) != (newest.leader, newest.leader_epoch):
        return None
    return known.leader, known.leader_epoch


def informed_coordinator(cluster: VirtualCluster, broker_id: int) -> tuple[int, int] | None:
    """Do the same, but return None as long as it may show older offsets than were acknowledged."""
    coordinator = newest_coordinator(cluster, broker_id)
    if coordinator is None:
        return None
    partition = cluster.nodes.brokers[broker_id].replica_manager.partitions.get(GROUPS_PARTITION)
    begin = None if partition is None else partition.leader_epoch_start_offset
    if partition is None or begin is None or partition.log.high_watermark < begin:
        return None
    return coordinator

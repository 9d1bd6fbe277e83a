"""Partitions of a follower's fetch that have nothing new for it, told apart without reading them.

A follower names all its partitions in each fetch, and one record in one of them sends it around. What
was found in the others is what is found again, as long as the fetch, the log, the ISR and the role are
the same. Kafka's leaders read them all; so only the cost differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.replica.fetch_params import FetchPartition
    from broker_sim.replica.partition import Partition
    from broker_sim.replica.replica import Replica

__all__ = ["idle_replica"]


def idle_replica(partition: Partition, replica_id: int, fetch: FetchPartition) -> Replica | None:
    """Return the follower if this very fetch found nothing before, and would find the same now.

    None where `Partition.fetch_records` has to be asked. A new leader epoch has forgotten the fetch.
    """
    states = partition.replica_states
    replica = states.followers.get(replica_id)
    if (
        replica is None
        or replica.idle_fetch is not fetch
        or replica.idle_isr is not states.isr_state
    ):
        return None
    data, log = replica.idle_data, partition.log
    if (
        data is None
        or log.log_end_offset != fetch.fetch_offset
        or log.high_watermark != data.high_watermark
        or log.log_start_offset != data.log_start_offset
    ):
        return None
    return replica

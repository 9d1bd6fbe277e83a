"""The replica that a consumer should read from (KIP-392); mirrors `RackAwareReplicaSelector`.

A leader asks it when a consumer says which rack it is in. Its answer is the consumer's preferred read
replica; the consumer then asks that broker until it is told otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.replica.fetch_params import FetchPartitionData

if TYPE_CHECKING:
    from broker_sim.log import PartitionLog
    from broker_sim.metadata.cache import MetadataCache
    from broker_sim.replica.fetch_params import FetchParams, FetchPartition
    from broker_sim.replica.partition import Partition

NO_REPLICA: Final = -1


class RackAwareReplicaSelector:
    """Prefers an in-sync follower in the consumer's rack that has the record it asks for.

    Of several the one with the most records, then the one that was last known to have caught up.
    """

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata

    def select(self, partition: Partition, fetch_offset: int, rack_id: str) -> int:
        """Return the follower to read from, -1 for the leader itself; `partition` is led here."""
        rack_of = self._metadata.rack_of
        if not rack_id or rack_of(partition.broker_id) == rack_id:
            return NO_REPLICA
        in_sync = partition.isr_state.isr
        candidates = [
            replica
            for replica in partition.replica_states.followers.values()
            if replica.broker_id in in_sync
            and replica.log_start_offset <= fetch_offset <= replica.log_end_offset
            and rack_of(replica.broker_id) == rack_id
        ]
        if not candidates:
            return NO_REPLICA
        best = max(candidates, key=lambda r: (r.log_end_offset, r.last_caught_up_time_ms, r.broker_id))
        return best.broker_id


def redirected(log: PartitionLog, broker_id: int) -> FetchPartitionData:
    """Return the offsets of a log and no records, because the consumer should ask that broker."""
    return FetchPartitionData(
        ErrorCode.NONE,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        preferred_read_replica=broker_id,
    )


def preferred_read_replica(
    selector: RackAwareReplicaSelector, partition: Partition, params: FetchParams, fetch: FetchPartition
) -> int:
    """Return the broker that a consumer should ask for a partition led here, -1 for this one."""
    if not partition.is_leader or params.is_from_follower:
        return -1
    return selector.select(partition, fetch.fetch_offset, params.rack_id)

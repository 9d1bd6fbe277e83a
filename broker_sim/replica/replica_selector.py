"""The replica that a consumer should read from (KIP-392); mirrors `RackAwareReplicaSelector`.

A leader selects a replica for each consumer that sends its rack. The response names it as the preferred
read replica, and the consumer fetches from that broker from then on.
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
    """Prefers an in-sync follower in the consumer's rack that has the fetch offset.

    Of several, it selects the one with the largest log end offset, then the one that caught up last.
    """

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata

    def select(self, partition: Partition, fetch_offset: int, rack_id: str) -> int:
        """Return the broker id of the follower to read from, -1 for the leader; this broker leads `partition`."""
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
    """Return the log's offsets without records, with `broker_id` as the preferred read replica."""
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
    """Return the broker id that a consumer should fetch from, -1 for this broker."""
    if not partition.is_leader or params.is_from_follower:
        return -1
    return selector.select(partition, fetch.fetch_offset, params.rack_id)

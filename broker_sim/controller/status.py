"""The controller's view of the cluster at one moment, for metrics.

Mirrors `ControllerMetadataMetrics` (the same counts) and `TimeSinceLastHeartbeatMs` of
`QuorumControllerMetrics`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from broker_sim.metadata import MetadataImage

CONTROLLER_ID: Final = 3000
"""The controller's node id for clients: not a broker's, and as in Kafka's own test clusters."""


class QuorumObserver(NamedTuple):
    """A broker that reads the metadata, with the position and time of its last heartbeat."""

    broker_id: int
    log_end_offset: int
    last_heartbeat_ms: int
    """Time in ms of the wall clock."""
    last_caught_up_ms: int
    """Wall clock time in ms when the broker last had all metadata, -1 for never."""


class QuorumStatus(NamedTuple):
    """The end of the metadata, and the observers; the controller is the only voter."""

    log_end_offset: int
    now_ms: int
    """Time in ms of the wall clock."""
    observers: tuple[QuorumObserver, ...]


class ControllerStatus(NamedTuple):
    """Counts over the cluster, and the ages of the last heartbeats of brokers with a valid session, by broker id."""

    active_broker_count: int
    fenced_broker_count: int
    global_topic_count: int
    global_partition_count: int
    offline_partition_count: int
    preferred_replica_imbalance_count: int
    time_since_last_heartbeat_ms: Mapping[int, int]


def controller_status(image: MetadataImage, time_since_last_heartbeat_ms: Mapping[int, int]) -> ControllerStatus:
    """Return the counts of the image. As in Kafka, a partition without a leader counts as imbalanced too."""
    partitions = [state for _, state in image.each_partition()]
    fenced = sum(broker.fenced for broker in image.brokers.values())
    return ControllerStatus(
        active_broker_count=len(image.brokers) - fenced,
        fenced_broker_count=fenced,
        global_topic_count=len(image.topics),
        global_partition_count=len(partitions),
        offline_partition_count=sum(not p.has_leader for p in partitions),
        preferred_replica_imbalance_count=sum(p.leader != p.preferred_replica for p in partitions),
        time_since_last_heartbeat_ms=time_since_last_heartbeat_ms,
    )

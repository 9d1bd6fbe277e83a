"""The controller's view of the cluster at one moment, for people and metrics.

Mirrors ``ControllerMetadataMetrics`` (the same counts) and the time since the last heartbeat of
``QuorumControllerMetrics``.
"""

from dataclasses import dataclass

from broker_sim.metadata import MetadataImage


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """One broker; the time since its last heartbeat is None when its session is over."""

    broker_id: int
    broker_epoch: int
    fenced: bool
    in_controlled_shutdown: bool
    time_since_last_heartbeat_ms: int | None


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """Counts over the whole cluster, and each broker by id."""

    metadata_version: int
    active_broker_count: int
    fenced_broker_count: int
    global_topic_count: int
    global_partition_count: int
    offline_partition_count: int
    preferred_replica_imbalance_count: int
    brokers: tuple[BrokerStatus, ...]


def controller_status(image: MetadataImage, brokers: tuple[BrokerStatus, ...]) -> ControllerStatus:
    """Count what the image shows. A partition without a leader is imbalanced too, as in Kafka."""
    partitions = [state for _, state in image.each_partition()]
    fenced = sum(broker.fenced for broker in brokers)
    return ControllerStatus(
        metadata_version=image.version,
        active_broker_count=len(brokers) - fenced,
        fenced_broker_count=fenced,
        global_topic_count=len(image.topics),
        global_partition_count=len(partitions),
        offline_partition_count=sum(not p.has_leader for p in partitions),
        preferred_replica_imbalance_count=sum(p.leader != p.preferred_replica for p in partitions),
        brokers=brokers,
    )

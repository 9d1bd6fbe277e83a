"""Kafka's metrics of share groups: sessions, records in flight, acknowledgements, and the share coordinator.

Not here are those that are histograms in Kafka: `PartitionLoadTimeMs`, `RequestTopicPartitionsFetchRatio`,
`TopicPartitionsAcquireTimeMs`, `InFlightBatchMessageCount`, `FetchLockTimeMs` and `FetchLockRatio`; nor the latency
of the share coordinator's writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.status.metric_families import counter, gauge
from broker_sim.metadata.topic_name import SHARE_GROUP_STATE_TOPIC
from broker_sim.share.partition.record_state import AcknowledgeType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from broker_sim.cluster.nodes.nodes import Nodes

SESSIONS = "kafka_server_sharesessioncache"
GROUPS = "kafka_server_sharegroupmetrics"
PARTITIONS = "kafka_server_sharepartitionmetrics"
COORDINATOR = "kafka_server_share_coordinator_metrics"


def share_families(nodes: Nodes) -> Iterator[Metric]:
    """Yield the metrics of all brokers; share groups themselves are counted with the other groups."""
    yield from _broker_families(nodes)
    yield from _partition_families(nodes)
    yield from _coordinator_families(nodes)


def _broker_families(nodes: Nodes) -> Iterator[Metric]:
    sessions = gauge(f"{SESSIONS}_sharesessionscount", "Share sessions.", "broker")
    partitions = gauge(f"{SESSIONS}_sharepartitionscount", "Partitions of all share sessions.", "broker")
    evictions = counter(
        f"{SESSIONS}_sharesessionevictions", "Share sessions that ended with their connections.", "broker"
    )
    acknowledged = counter(f"{GROUPS}_recordacknowledgements", "Records acknowledged.", "acktype", "broker")
    for broker_id, broker in nodes.brokers.items():
        label, manager = str(broker_id), broker.share_partitions
        sessions.add_metric((label,), len(manager.sessions))
        partitions.add_metric((label,), manager.sessions.partition_count)
        evictions.add_metric((label,), manager.sessions.evictions)
        for kind, count in manager.acknowledged_records.items():
            if kind is not AcknowledgeType.GAP:
                acknowledged.add_metric((kind.name.capitalize(), label), count)
    yield from (sessions, partitions, evictions, acknowledged)


def _partition_families(nodes: Nodes) -> Iterator[Metric]:
    labels = ("group", "topic", "partition", "broker")
    records = gauge(f"{PARTITIONS}_inflightmessagecount", "Records in flight.", *labels)
    batches = gauge(f"{PARTITIONS}_inflightbatchcount", "Batches in flight.", *labels)
    timeouts = counter(f"{PARTITIONS}_acquisitionlocktimeout", "Records whose lock was over.", *labels)
    for broker_id, broker in nodes.brokers.items():
        for one in broker.share_partitions.partitions:
            topic, number = one.topic_partition
            values = (one.key.group_id, topic, str(number), str(broker_id))
            records.add_metric(values, one.records.count)
            batches.add_metric(values, len(one.records.batches))
            timeouts.add_metric(values, one.lock_timeouts)
    yield from (records, batches, timeouts)


def _coordinator_families(nodes: Nodes) -> Iterator[Metric]:
    writes = counter(f"{COORDINATOR}_write", "Changes of the state of share partitions.", "broker")
    pruned = gauge(
        f"{COORDINATOR}_last_pruned_offset",
        "Where the records of a partition were deleted last.",
        "topic",
        "partition",
        "broker",
    )
    for broker_id, broker in nodes.brokers.items():
        coordinator, label = broker.share_coordinator, str(broker_id)
        writes.add_metric((label,), coordinator.counters.writes)
        for context in coordinator.runtime.loaded():
            if context.shard.pruned_offset >= 0:
                values = (SHARE_GROUP_STATE_TOPIC, str(context.partition), label)
                pruned.add_metric(values, context.shard.pruned_offset)
    yield from (writes, pruned)

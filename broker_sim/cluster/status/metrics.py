"""Kafka's metrics in Prometheus' text format, with the names that the JMX exporter commonly uses.

Needs prometheus-client (extra `metrics`). The label `broker` is added here, because a real broker has an
endpoint of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from broker_sim.cluster.status.coordinator_status import CLASSIC_STATES, STATES
from broker_sim.errors import MissingExtraError
from broker_sim.group.group import CLASSIC, CONSUMER, SHARE, STREAMS
from broker_sim.metadata.topic_name import SHARE_GROUP_STATE_TOPIC
from broker_sim.runtime.process import ProcessState
from broker_sim.share.partition.record_state import AcknowledgeType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.nodes import Nodes


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Return a gauge family without values."""
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - an extra

    return GaugeMetricFamily(name, text, labels=labels)


def counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    """Return a counter family without values; the exporter adds `_total` to its name."""
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 - an extra

    return CounterMetricFamily(name, text, labels=labels)


PURGATORY = "kafka_server_delayedoperationpurgatory"
REPLICA_MANAGER = "kafka_server_replicamanager"
FETCH_SESSIONS = "kafka_server_fetchsessioncache"
LOG_CLEANER = "kafka_log_logcleaner"
LOG_CLEANER_MANAGER = "kafka_log_logcleanermanager"
CONTROLLER = "kafka_controller_kafkacontroller"
GROUP_METADATA = "kafka_coordinator_group_groupmetadatamanager"
GROUP_COORDINATOR = "kafka_server_group_coordinator_metrics"
MARKER_CHANNEL = "kafka_coordinator_transaction_transactionmarkerchannelmanager"

GROUP_COUNTERS: Final = {
    "offset_commits": ("offset_commit_count", "Offsets committed."),
    "offset_deletions": ("offset_deletion_count", "Offsets deleted on request."),
    "offset_expirations": ("offset_expiration_count", "Offsets expired."),
    "classic_group_rebalances": ("group_completed_rebalance_count", "Completed rebalances of classic groups."),
    "consumer_group_rebalances": ("consumer_group_rebalance_count", "New epochs of consumer groups."),
    "share_group_rebalances": ("share_group_rebalance_count", "New epochs of share groups."),
    "streams_group_rebalances": ("streams_group_rebalance_count", "New epochs of streams groups."),
}
"""The fields of `GroupCounters`, each with Kafka's name and its text."""


NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")
"""Matches characters that are not allowed in Prometheus names."""


def metrics_text(nodes: Nodes) -> str:
    """Return all current metrics; dead brokers have none. Raises MissingExtraError."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - an extra
        from prometheus_client.registry import Collector  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingExtraError("metrics need prometheus-client: pip install 'broker-sim[metrics]'") from error

    class NodesCollector(Collector):
        def collect(self) -> Iterator[Metric]:
            yield from _purgatory_families(nodes)
            yield from _replica_families(nodes)
            yield from _fetch_session_families(nodes)
            yield from share_families(nodes)
            yield from _group_families(nodes)
            yield from _cleaner_families(nodes)
            yield from _transaction_families(nodes)
            yield from _controller_families(nodes)
            yield from _memory_families(nodes)
            yield from _client_families(nodes)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodesCollector())
    return generate_latest(registry).decode()


def _memory_families(nodes: Nodes) -> Iterator[Metric]:
    figures = {
        "used": ("Memory of the logs of all brokers and of large requests.", nodes.memory.used_bytes),
        "limit": ("Memory limit, at which clients' records are refused.", nodes.memory.limit_bytes),
    }
    for name, (text, value) in figures.items():
        family = gauge(f"broker_sim_memory_{name}_bytes", text)
        family.add_metric((), value)
        yield family


def _client_families(nodes: Nodes) -> Iterator[Metric]:
    """Yield a family for each metric that clients have pushed."""
    families: dict[tuple[str, tuple[str, ...]], GaugeMetricFamily] = {}
    for client in nodes.client_metrics.statuses():
        for metric in client.metrics:
            labels = tuple(sorted(metric.attributes))
            name = NOT_IN_NAMES.sub("_", metric.name)
            text = f"{metric.name}, as clients have pushed it."
            names = ("client_id", "client_instance_id", *(NOT_IN_NAMES.sub("_", each) for each in labels))
            family = families.setdefault((name, labels), gauge(name, text, *names))
            values = (client.client_id or "", client.client_instance_id, *(metric.attributes[each] for each in labels))
            family.add_metric(values, metric.value)
    yield from families.values()


def _purgatory_families(nodes: Nodes) -> Iterator[Metric]:
    labels = ("delayedoperation", "broker")
    size = gauge(f"{PURGATORY}_purgatorysize", "Entries in all watch lists.", *labels)
    delayed = gauge(f"{PURGATORY}_numdelayedoperations", "Operations that wait in the timer.", *labels)
    expired: dict[str, CounterMetricFamily] = {}
    for broker_id, broker in nodes.brokers.items():
        for purgatory in broker.purgatories:
            statistics = purgatory.statistics()
            size.add_metric((statistics.name, str(broker_id)), statistics.watched)
            delayed.add_metric((statistics.name, str(broker_id)), statistics.num_delayed)
            if statistics.name not in expired:
                expired[statistics.name] = counter(
                    f"kafka_server_delayed{statistics.name.lower()}metrics_expires",
                    "Operations that expired.",
                    "broker",
                )
            expired[statistics.name].add_metric((str(broker_id),), statistics.expired)
    yield size
    yield delayed
    yield from expired.values()


def _replica_families(nodes: Nodes) -> Iterator[Metric]:
    gauges = {
        "partitioncount": "Partitions with a replica on the broker.",
        "leadercount": "Partitions that the broker leads.",
        "underreplicatedpartitions": "Led partitions whose ISR lacks a replica.",
        "underminisrpartitioncount": "Led partitions whose ISR is smaller than min.insync.replicas.",
        "atminisrpartitioncount": "Led partitions whose ISR is just as large as min.insync.replicas.",
    }
    families = {name: gauge(f"{REPLICA_MANAGER}_{name}", text, "broker") for name, text in gauges.items()}
    for broker_id, broker in nodes.brokers.items():
        for name, value in _replica_figures(broker).items():
            families[name].add_metric((str(broker_id),), value)
    yield from families.values()
    yield from _isr_families(nodes)


def _isr_families(nodes: Nodes) -> Iterator[Metric]:
    counters = {
        "isrshrinks": "ISRs that became smaller.",
        "isrexpands": "ISRs that became larger.",
        "failedisrupdates": "Changes of an ISR that the controller refused.",
    }
    families = {name: counter(f"{REPLICA_MANAGER}_{name}", text, "broker") for name, text in counters.items()}
    for broker_id, broker in nodes.brokers.items():
        manager = broker.alter_partition
        counts = (manager.isr_shrinks, manager.isr_expands, manager.failed_isr_updates)
        for family, count in zip(families.values(), counts, strict=True):
            family.add_metric((str(broker_id),), count)
    yield from families.values()


def _fetch_session_families(nodes: Nodes) -> Iterator[Metric]:
    sessions = gauge(f"{FETCH_SESSIONS}_numincrementalfetchsessions", "Fetch sessions.", "broker")
    partitions = gauge(
        f"{FETCH_SESSIONS}_numincrementalfetchpartitionscached", "Partitions of all fetch sessions.", "broker"
    )
    evictions = counter(
        f"{FETCH_SESSIONS}_incrementalfetchsessionevictions", "Fetch sessions evicted from the cache.", "broker"
    )
    for broker_id, broker in nodes.brokers.items():
        cache = broker.fetch_manager.cache
        sessions.add_metric((str(broker_id),), cache.session_count)
        partitions.add_metric((str(broker_id),), cache.partition_count)
        evictions.add_metric((str(broker_id),), cache.evictions)
    yield sessions
    yield partitions
    yield evictions


def _replica_figures(broker: Broker) -> dict[str, int]:
    led = broker.replica_manager.leader_partitions()
    return {
        "partitioncount": len(broker.replica_manager.partitions),
        "leadercount": len(led),
        "underreplicatedpartitions": sum(len(p.isr_state.isr) < len(p.replicas) for p in led),
        "underminisrpartitioncount": sum(p.is_under_min_isr for p in led),
        "atminisrpartitioncount": sum(len(p.isr_state.isr) == p.effective_min_isr for p in led),
    }


def _group_families(nodes: Nodes) -> Iterator[Metric]:
    offsets = gauge(f"{GROUP_METADATA}_numoffsets", "Committed offsets.", "broker")
    classic = gauge(f"{GROUP_METADATA}_numgroups", "Classic groups.", "broker")
    kinds = gauge(f"{GROUP_COORDINATOR}_group_count", "Groups of a kind.", "protocol", "broker")
    states = {
        state: gauge(f"{GROUP_METADATA}_numgroups{state.lower()}", f"Classic groups in the state {state}.", "broker")
        for state in CLASSIC_STATES
    }
    modern = {
        kind: gauge(
            f"{GROUP_COORDINATOR}_{kind}_group_count", f"Groups of the kind {kind} in a state.", "state", "broker"
        )
        for kind in STATES
    }
    counters = {
        field: counter(f"{GROUP_COORDINATOR}_{name}", text, "broker") for field, (name, text) in GROUP_COUNTERS.items()
    }
    for broker_id, broker in nodes.brokers.items():
        label = str(broker_id)
        shards = broker.groups.shards()
        groups = [group for shard in shards for group in shard.groups.values()]
        offsets.add_metric((label,), sum(shard.offsets.count() for shard in shards))
        group_counts = Counter((group.group_type, group.state_name) for group in groups)
        for kind in (CLASSIC, CONSUMER, SHARE, STREAMS):
            kinds.add_metric((kind, label), sum(group.group_type == kind for group in groups))
        classic.add_metric((label,), sum(group.group_type == CLASSIC for group in groups))
        for state, family in states.items():
            family.add_metric((label,), group_counts[CLASSIC, state])
        for kind, family in modern.items():
            for state in STATES[kind]:
                family.add_metric((state, label), group_counts[kind, state])
        counted = broker.groups.counters
        for field, counts in counters.items():
            counts.add_metric((label,), getattr(counted, field))
    yield from (offsets, classic, kinds, *states.values(), *modern.values(), *counters.values())


def _cleaner_families(nodes: Nodes) -> Iterator[Metric]:
    gauges = {
        f"{LOG_CLEANER}_cleaner_recopy_percent": "Share of bytes that the last cleanings kept.",
        f"{LOG_CLEANER}_max_buffer_utilization_percent": "Use of the buffer for keys.",
        f"{LOG_CLEANER}_max_clean_time_secs": "Longest time of the last cleanings.",
        f"{LOG_CLEANER}_max_compaction_delay_secs": "Delay beyond max.compaction.lag.ms.",
        f"{LOG_CLEANER_MANAGER}_max_dirty_percent": "Dirty share of the dirtiest log.",
        f"{LOG_CLEANER_MANAGER}_time_since_last_run_ms": "Time since the last search for a dirty log.",
        f"{LOG_CLEANER_MANAGER}_uncleanable_bytes": "Dirty bytes of logs that cannot be cleaned.",
        f"{LOG_CLEANER_MANAGER}_uncleanable_partitions_count": "Logs that cannot be cleaned.",
    }
    families = [gauge(name, text, "broker") for name, text in gauges.items()]
    for broker_id, broker in nodes.brokers.items():
        manager = nodes.nodes[broker_id].logs.cleaner
        stats = broker.background_work.log_cleaner.last_stats
        read = max(sum(one.bytes_read for one in stats), 1)
        values = (
            100 * sum(one.bytes_written for one in stats) // read,
            int(100 * max((one.buffer_utilization for one in stats), default=0)),
            max((one.elapsed_ms for one in stats), default=0) // 1000,
            manager.max_compaction_delay_ms // 1000,
            int(100 * manager.dirtiest_log_cleanable_ratio),
            broker.clock.now_ms() - manager.last_run_ms,
            manager.uncleanable_bytes(nodes.nodes[broker_id].logs.logs),
            len(manager.uncleanable_partitions),
        )
        for family, value in zip(families, values, strict=True):
            family.add_metric((str(broker_id),), value)
    yield from families


def _transaction_families(nodes: Nodes) -> Iterator[Metric]:
    without_leader = gauge(
        f"{MARKER_CHANNEL}_unknowndestinationqueuesize",
        "Markers of transactions that wait for a partition's leader.",
        "broker",
    )
    to_write_again = gauge(
        f"{MARKER_CHANNEL}_logappendretryqueuesize",
        "Complete transactions whose write failed and will be retried.",
        "broker",
    )
    for broker_id, broker in nodes.brokers.items():
        markers, label = broker.transactions.markers, str(broker_id)
        without_leader.add_metric((label,), markers.unknown_destination_queue_size)
        to_write_again.add_metric((label,), markers.log_append_retry_queue_size)
    yield from (without_leader, to_write_again)


def _controller_families(nodes: Nodes) -> Iterator[Metric]:
    status = nodes.controller.describe()
    figures = {
        "activebrokercount": ("Registered brokers, not fenced.", status.active_broker_count),
        "fencedbrokercount": ("Registered brokers that are fenced.", status.fenced_broker_count),
        "globaltopiccount": ("Topics.", status.global_topic_count),
        "globalpartitioncount": ("Partitions of all topics.", status.global_partition_count),
        "offlinepartitionscount": ("Partitions without a leader.", status.offline_partition_count),
        "preferredreplicaimbalancecount": (
            "Partitions that their preferred replica does not lead.",
            status.preferred_replica_imbalance_count,
        ),
    }
    for name, (text, value) in figures.items():
        family = gauge(f"{CONTROLLER}_{name}", text)
        family.add_metric((), value)
        yield family
    heartbeats = gauge(
        f"{CONTROLLER}_timesincelastheartbeatms",
        "Time since the last heartbeat of a broker whose session lasts.",
        "broker",
    )
    for broker_id, age_ms in status.time_since_last_heartbeat_ms.items():
        heartbeats.add_metric((str(broker_id),), age_ms)
    yield heartbeats
    states = gauge("broker_sim_broker_state", "1 for the state that a broker is in.", "state", "broker")
    for broker_id, node in nodes.nodes.items():
        for state in ProcessState:
            states.add_metric((state.value, str(broker_id)), int(node.state is state))
    yield states


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
    queue = [
        counter(f"{GROUPS}_deadletterqueuerecordcount", "Dead letters written.", "group", "broker"),
        counter(f"{GROUPS}_deadletterqueuetotalproducerequests", "Requests to write dead letters.", "group", "broker"),
        counter(
            f"{GROUPS}_deadletterqueuefailedproducerequests",
            "Requests after which dead letters were dropped.",
            "group",
            "broker",
        ),
    ]
    for broker_id, broker in nodes.brokers.items():
        label, manager = str(broker_id), broker.share_partitions
        sessions.add_metric((label,), len(manager.sessions))
        partitions.add_metric((label,), manager.sessions.partition_count)
        evictions.add_metric((label,), manager.sessions.evictions)
        for kind, count in manager.acknowledged_records.items():
            if kind is not AcknowledgeType.GAP:
                acknowledged.add_metric((kind.name.capitalize(), label), count)
        letters = manager.dead_letters
        if letters is not None:
            for family, counts in zip(queue, (letters.records, letters.requests, letters.failed_requests), strict=True):
                for group_id, count in counts.items():
                    family.add_metric((group_id, label), count)
    yield from (sessions, partitions, evictions, acknowledged, *queue)


def _partition_families(nodes: Nodes) -> Iterator[Metric]:
    labels = ("group", "topic", "partition", "broker")
    records = gauge(f"{PARTITIONS}_inflightmessagecount", "Records in flight.", *labels)
    batches = gauge(f"{PARTITIONS}_inflightbatchcount", "Batches in flight.", *labels)
    timeouts = counter(f"{PARTITIONS}_acquisitionlocktimeout", "Records whose acquisition lock timed out.", *labels)
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
        "Offset before which the records of a partition were last deleted.",
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

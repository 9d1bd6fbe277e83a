"""The picture of one moment that the page draws: the state of the cluster in small parts, each under a name.

    broker/1            a part is what `/status` says of one thing: a broker, a link, a fault, a partition,
    partition/orders/0  a group, a transaction, a producer
    purgatory/1/Fetch   the parked operations of a purgatory by deadline, and the levels of its timing wheel
    requests            the number of requests by API and client since somebody began to look

Times of parked operations are deadlines and not ages, so a part stays equal until something happens and a stream sends
only the parts that changed. What a big cluster has by the thousand is cut to what matters, with the number of all.
Reading is observation: it takes the lock of a timer as `/purgatory` does, and gives and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final

from broker_sim_purgatory import DelayedOperation

from broker_sim.cluster.status.cluster_status import (
    FaultStatus,
    LinkStatus,
    MemoryStatus,
    broker_status,
    partition_status,
    waiting_reasons,
)
from broker_sim.cluster.status.coordinator_status import groups_status
from broker_sim.cluster.status.transaction_status import producers_status, transactions_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker_sim_purgatory import DelayedOperationPurgatory, PlacedTask

    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.metadata import MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition

MOST_PARKED: Final = 150
"""Number of operations of a purgatory that are shown, those with the nearest deadlines."""
MOST_PARTITIONS: Final = 200
MOST_GROUPS: Final = 100
MOST_PRODUCERS: Final = 100
SHOWN_KEYS: Final = 5
"""Number of an operation's keys that are shown; a fetch may have a thousand."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of one moment."""

    at_ms: int
    """The moment by the cluster's monotonic clock, which deadlines refer to."""
    parts: dict[str, Any]
    """Plain values by the names of the parts."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"at_ms": self.at_ms, "parts": self.parts}


def picture(nodes: Nodes, search: str = "", *, counts_requests: bool = True) -> Picture:
    """Return the picture of this moment; `search` is a part of the names of the partitions to show.

    Counting requests begins with the first picture that shall have them.
    """
    image = nodes.controller.image
    parts: dict[str, Any] = dict(_partitions(nodes, image, search))
    states = [state for topic in image.topics.values() for state in topic.partitions]
    leads = Counter(state.leader for state in states)
    replicas = Counter(broker for state in states for broker in state.replicas)
    parts["cluster"] |= {
        "cluster_id": nodes.cluster_id,
        "memory": asdict(MemoryStatus(nodes.memory.used_bytes, nodes.memory.limit_bytes)),
        "metadata_delay_ms": nodes.metadata_delay.max_ms,
    }
    for broker_id in nodes.nodes:
        status = broker_status(nodes, broker_id).to_json()
        parts[f"broker/{broker_id}"] = {**status, "leads": leads[broker_id], "replicas": replicas[broker_id]}
    for (source, target), link in nodes.links.faults.items():
        parts[f"link/{source}/{target}"] = LinkStatus(source, target, link.drop, link.delay_ms).to_json()
    for injected in nodes.faults.injected:
        fault = FaultStatus(**injected.to_json())
        parts[f"fault/{fault.id}"] = fault.to_json()
    parts |= _purgatories(nodes)
    parts |= _coordinators(nodes)
    if counts_requests:
        parts["requests"] = nodes.requests.look(nodes.scheduler.clock.now_ms())
    return Picture(nodes.scheduler.clock.now_ms(), parts)


def _partitions(nodes: Nodes, image: MetadataImage, search: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield partitions that match the search, those with which something is wrong before others; and their numbers."""
    count = matching = 0
    unwell: list[TopicPartition] = []
    well: list[TopicPartition] = []
    for key, state in image.each_partition():
        count += 1
        is_well = state.has_leader and len(state.isr) == len(state.replicas)
        if not is_well:
            unwell.append(key)
        # Kafka's own topics are shown to those who search for them.
        if search in str(key) if search else not (is_well and key.topic.startswith("__")):
            matching += 1
            if is_well and len(well) < MOST_PARTITIONS:
                well.append(key)
    shown = [*(key for key in unwell if search in str(key)), *well][:MOST_PARTITIONS]
    yield (
        "cluster",
        {"partitions": count, "partitions_unwell": len(unwell), "partitions_matching": matching, "search": search},
    )
    for topic, number in shown:
        status = partition_status(nodes, topic, number).to_json()
        yield f"partition/{topic}/{number}", {"topic": topic, **status}


def _purgatories(nodes: Nodes) -> Iterator[tuple[str, dict[str, Any]]]:
    waits_for = waiting_reasons(nodes)
    for broker_id, broker in nodes.brokers.items():
        for purgatory in broker.purgatories:
            yield f"purgatory/{broker_id}/{purgatory.name}", purgatory_part(broker_id, purgatory, waits_for)


def purgatory_part(
    broker_id: int, purgatory: DelayedOperationPurgatory[Any], waits_for: Callable[[str, Iterable[object]], str]
) -> dict[str, Any]:
    """Return what waits in a purgatory; `waits_for` says by its name and an operation's keys what it waits for."""
    statistics = purgatory.statistics()
    levels = purgatory.timer.read_wheels(
        lambda wheels: [(each.level, each.tick_ms, each.wheel_size, each.current_time_ms) for each in wheels]
    )
    buckets: dict[int, Counter[int]] = {level: Counter() for level, *_ in levels}
    nearest: list[PlacedTask] = []
    keys: dict[int, list[object]] = {}
    if statistics.num_delayed:
        placed = [each for each in purgatory.timer.placements() if isinstance(each.task, DelayedOperation)]
        for each in placed:
            buckets.setdefault(each.wheel_level, Counter())[each.wheel_bucket] += 1
        nearest = nsmallest(MOST_PARKED, placed, key=lambda each: each.task.expiration_ms)
        shown = {id(each.task): keys.setdefault(id(each.task), []) for each in nearest}
        for key, operations, _ in purgatory.watched_by_key():
            for operation in operations:
                if (under := shown.get(id(operation))) is not None:
                    under.append(key)
    return {
        "broker": broker_id,
        "name": purgatory.name,
        "num_delayed": statistics.num_delayed,
        "watched": statistics.watched,
        "completed": statistics.completed,
        "expired": statistics.expired,
        "purged": statistics.purged,
        "wheel": [
            {
                "level": level,
                "tick_ms": tick_ms,
                "size": size,
                "current_time_ms": now_ms,
                "buckets": {str(index): count for index, count in buckets[level].items()},
            }
            for level, tick_ms, size, now_ms in levels
        ],
        "parked": [
            _operation(each, keys[id(each.task)], waits_for(purgatory.name, keys[id(each.task)])) for each in nearest
        ],
    }


def _operation(placed: PlacedTask, keys: list[object], waits_for: str) -> dict[str, Any]:
    operation = placed.task
    assert isinstance(operation, DelayedOperation)
    texts = sorted(map(str, keys))
    return {
        "id": operation.operation_id or id(operation),
        "operation": type(operation).__name__,
        "client_id": getattr(operation, "client_id", None),
        "keys": texts[:SHOWN_KEYS],
        "more_keys": max(len(texts) - SHOWN_KEYS, 0),
        "since_ms": operation.created_ms,
        "due_ms": operation.expiration_ms,
        "level": placed.wheel_level,
        "bucket": placed.wheel_bucket,
        "waits_for": waits_for,
    }


def _coordinators(nodes: Nodes) -> Iterator[tuple[str, dict[str, Any]]]:
    for group in groups_status(nodes)[:MOST_GROUPS]:
        yield f"group/{group.id}", group.to_json()
    now_ms = nodes.scheduler.clock.now_ms()
    for transaction in transactions_status(nodes)[:MOST_PRODUCERS]:
        status = transaction.to_json()
        age_ms = status.pop("age_ms")
        yield (
            f"transaction/{transaction.transactional_id}",
            {**status, "since_ms": None if age_ms is None else now_ms - age_ms},
        )
    for producer in producers_status(nodes)[:MOST_PRODUCERS]:
        name = f"producer/{producer.topic}/{producer.partition}/{producer.producer_id}"
        yield name, asdict(producer)

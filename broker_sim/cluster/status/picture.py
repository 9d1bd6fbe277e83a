"""The state of the cluster at one moment as the page draws it: small named parts.

    broker/1            a part has the `/status` entry of one broker, link, fault, partition,
    partition/orders/0  group, transaction or producer
    purgatory/1/Fetch   the parked operations of a purgatory by deadline, and the levels of its timing wheel
    requests            the number of requests by API and client since the first picture

Times of parked operations are deadlines and not ages, so a part stays equal until something happens, and a stream
sends only the parts that changed. Long lists of a big cluster are cut to the most important entries, with the total
number. Reading takes the lock of a timer, as `/purgatory` does, and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim_purgatory import DelayedOperation, PlacedTask

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

    from broker_sim_purgatory import DelayedOperationPurgatory

    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.metadata import MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition

MAX_PARKED: Final = 400
"""Number of operations shown, divided equally among the purgatories; those with the nearest deadlines are shown."""
MIN_PARKED: Final = 20
"""Minimum number of operations shown of each purgatory, however many purgatories there are."""
MAX_PARTITIONS: Final = 200
MAX_GROUPS: Final = 100
MAX_PRODUCERS: Final = 100
SHOWN_KEYS: Final = 5
"""Number of an operation's keys that are shown; a fetch may have a thousand."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The state of the cluster at one moment."""

    at_ms: int
    """The moment in ms by the cluster's monotonic clock, as deadlines are."""
    parts: dict[str, Any]
    """Plain values by part name."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"at_ms": self.at_ms, "parts": self.parts}


class WheelBucket(NamedTuple):
    """A bucket of a timing wheel: level from 1, bucket from 0."""

    level: int
    bucket: int


def picture(
    nodes: Nodes, search: str = "", bucket: WheelBucket | None = None, *, counts_requests: bool = True
) -> Picture:
    """Return the picture of this moment, with the partitions whose names contain `search`.

    Operations in `bucket` are included, whatever their deadlines. Counting of requests starts with the
    first picture with `counts_requests`.
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
    parts |= _purgatories(nodes, bucket)
    parts |= _coordinators(nodes)
    if counts_requests:
        parts["requests"] = nodes.requests.look(nodes.scheduler.clock.now_ms())
    return Picture(nodes.scheduler.clock.now_ms(), parts)


def _partitions(nodes: Nodes, image: MetadataImage, search: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the partitions that match the search, those with a problem first, and the number of partitions."""
    count = matching = 0
    unwell: list[TopicPartition] = []
    well: list[TopicPartition] = []
    for key, state in image.each_partition():
        count += 1
        is_well = state.has_leader and len(state.isr) == len(state.replicas)
        if not is_well:
            unwell.append(key)
        # Kafka's own topics are shown only if the search matches them.
        if search in str(key) if search else not (is_well and key.topic.startswith("__")):
            matching += 1
            if is_well and len(well) < MAX_PARTITIONS:
                well.append(key)
    shown = [*(key for key in unwell if search in str(key)), *well][:MAX_PARTITIONS]
    yield (
        "cluster",
        {"partitions": count, "partitions_unwell": len(unwell), "partitions_matching": matching, "search": search},
    )
    for topic, number in shown:
        status = partition_status(nodes, topic, number).to_json()
        yield f"partition/{topic}/{number}", {"topic": topic, **status}


def _purgatories(nodes: Nodes, bucket: WheelBucket | None) -> Iterator[tuple[str, dict[str, Any]]]:
    waits_for = waiting_reasons(nodes)
    purgatories = [(broker_id, each) for broker_id, broker in nodes.brokers.items() for each in broker.purgatories]
    busy = sum(each.num_delayed() > 0 for _, each in purgatories)
    most = max(MAX_PARKED // max(busy, 1), MIN_PARKED)
    for broker_id, purgatory in purgatories:
        part = purgatory_part(broker_id, purgatory, waits_for, most, bucket)
        yield f"purgatory/{broker_id}/{purgatory.name}", part


def purgatory_part(
    broker_id: int,
    purgatory: DelayedOperationPurgatory[Any],
    waits_for: Callable[[str, Iterable[object]], str],
    most: int = MAX_PARKED,
    bucket: WheelBucket | None = None,
) -> dict[str, Any]:
    """Return a purgatory's operations and wheel; `waits_for(name, keys)` describes what an operation waits for.

    At most `most` operations are described, those with the nearest deadlines, and those in `bucket`.
    """
    statistics = purgatory.statistics()
    levels, nearest, in_bucket = purgatory.timer.read_wheels(partial(_read, most, bucket))
    keys: dict[int, list[object]] = {id(each.task): [] for each in (*nearest, *in_bucket)}
    if keys:
        for key, operations, _ in purgatory.watched_by_key():
            for operation_id in keys.keys() & map(id, operations):
                keys[operation_id].append(key)

    def describe(operations: list[PlacedTask]) -> list[dict[str, Any]]:
        return [
            _operation(each, keys[id(each.task)], waits_for(purgatory.name, keys[id(each.task)])) for each in operations
        ]

    part = {
        "broker": broker_id,
        "name": purgatory.name,
        "num_delayed": statistics.num_delayed,
        "watched": statistics.watched,
        "completed": statistics.completed,
        "expired": statistics.expired,
        "purged": statistics.purged,
        "wheel": levels,
        "parked": describe(nearest),
    }
    return {**part, "in_bucket": describe(in_bucket)} if in_bucket else part


def _read(
    most: int, chosen: WheelBucket | None, wheels: Iterable[Any]
) -> tuple[list[dict[str, Any]], list[PlacedTask], list[PlacedTask]]:
    """Return the levels of a wheel, the `most` operations with the nearest deadlines, and those of the bucket.

    Buckets further away are only counted: no operation is due before its bucket begins.
    """
    levels: list[dict[str, Any]] = []
    used: list[Any] = []
    in_bucket: list[PlacedTask] = []
    for wheel in wheels:
        counts = {bucket: count for bucket in wheel.used_buckets() if (count := bucket.count())}
        used += counts
        for bucket in counts:
            if chosen == (wheel.level, bucket.index):
                in_bucket = _nearest(most, _placed(bucket))
        levels.append(
            {
                "level": wheel.level,
                "tick_ms": wheel.tick_ms,
                "size": wheel.wheel_size,
                "current_time_ms": wheel.current_time_ms,
                "buckets": {str(bucket.index): count for bucket, count in counts.items()},
            }
        )
    nearest: list[PlacedTask] = []
    for bucket in sorted(used, key=lambda each: each.expiration_ms):
        if len(nearest) == most and bucket.expiration_ms > nearest[-1].task.expiration_ms:
            break
        nearest += _placed(bucket)
        if len(nearest) >= most:
            nearest = _nearest(most, nearest)
    return levels, _nearest(most, nearest), in_bucket


def _placed(bucket: Any) -> list[PlacedTask]:
    return [PlacedTask(each, bucket.level, bucket.index) for each in bucket if isinstance(each, DelayedOperation)]


def _nearest(most: int, operations: list[PlacedTask]) -> list[PlacedTask]:
    return nsmallest(most, operations, key=lambda each: each.task.expiration_ms)


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
    for group in groups_status(nodes)[:MAX_GROUPS]:
        yield f"group/{group.id}", group.to_json()
    now_ms = nodes.scheduler.clock.now_ms()
    for transaction in transactions_status(nodes)[:MAX_PRODUCERS]:
        status = transaction.to_json()
        age_ms = status.pop("age_ms")
        yield (
            f"transaction/{transaction.transactional_id}",
            {**status, "since_ms": None if age_ms is None else now_ms - age_ms},
        )
    for producer in producers_status(nodes)[:MAX_PRODUCERS]:
        name = f"producer/{producer.topic}/{producer.partition}/{producer.producer_id}"
        yield name, asdict(producer)

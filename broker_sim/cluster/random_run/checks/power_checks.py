"""What a power loss may take, and what it may not."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from broker_sim.cluster.nodes.lost_records import kept_batches
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.errors import ApiError
from broker_sim.protocol.record_batch import parse_header, verify_crc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.cluster.random_run.checks.history import Acknowledged
    from broker_sim.cluster.random_run.schedule import Schedule
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster

__all__ = ["check_recovered", "is_lost_with_power", "lost_text"]


def check_recovered(cluster: VirtualCluster, schedule: Schedule, broker_id: int) -> None:
    """Look at the logs of a broker that has just been started.

    Every batch has the records that its CRC says; and where each append was flushed, nothing is gone.
    """
    node = cluster.nodes.nodes[broker_id]
    for key, batches in kept_batches(node.logs).items():
        for base_offset, _, batch in batches:
            try:
                verify_crc(memoryview(batch), parse_header(batch))
            except ApiError:
                violated(
                    "recovered-batches-are-whole",
                    f"broker {broker_id} has recovered a damaged batch of {key} at {base_offset}",
                )
    if node.lost and not schedule.may_lose_records:
        violated("flushed-records-stay", f"each append was flushed, and power took {node.lost[-1]}")


def is_lost_with_power(cluster: VirtualCluster, topic: str, one: Acknowledged) -> bool:
    """Return whether a broker has lost the record with its power."""
    return any(
        lost.topic_partition == (topic, one.partition)
        and lost.first_offset <= one.offset < lost.end_offset
        for lost in cluster.lost_records
    )


def lost_text(records: Iterable[Acknowledged]) -> str:
    """Return which acknowledged records were lost, such as `partition 0: 17 (b'0-9'), 18 (b'0-10')`."""
    by_partition = defaultdict(list)
    for one in sorted(records):
        by_partition[one.partition].append(f"{one.offset} ({one.value!r})")
    return "; ".join(
        f"partition {partition}: {', '.join(offsets)}"
        for partition, offsets in by_partition.items()
    )

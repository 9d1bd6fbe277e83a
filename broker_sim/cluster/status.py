"""What a cluster looks like at this moment, as plain values: the answers of `status` and `purgatory`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker_sim.cluster.nodes import Nodes

__all__ = ["cluster_status", "purgatory_status"]


def cluster_status(nodes: Nodes) -> dict[str, Any]:
    """Return brokers with their state, faults, and partitions with their replicas."""
    image = nodes.controller.image
    brokers = []
    for broker_id, node in nodes.nodes.items():
        registered = image.brokers.get(broker_id)
        brokers.append(
            {
                "id": broker_id,
                "address": f"{node.address[0]}:{node.address[1]}",
                "state": node.state.value,
                "clients_cut_off": node.clients_cut_off,
                "fenced": registered is None or registered.fenced,
                "epoch": -1 if registered is None else registered.epoch,
            }
        )
    return {
        "cluster_id": nodes.cluster_id,
        "brokers": brokers,
        "links": [
            {"from": source, "to": target, "drop": fault.drop, "delay_ms": fault.delay_ms}
            for (source, target), fault in nodes.links.faults.items()
        ],
        "faults": [injected.to_json() for injected in nodes.faults.injected],
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    _partition_status(nodes, topic.name, number)
                    for number in range(len(topic.partitions))
                ],
            }
            for topic in image.topics.values()
        ],
    }


def _partition_status(nodes: Nodes, topic: str, number: int) -> dict[str, Any]:
    state = nodes.controller.image.topics[topic].partitions[number]
    replicas = []
    for replica in state.replicas:
        broker = nodes.brokers.get(replica)
        partition = None
        if broker is not None:
            partition = broker.replica_manager.partitions.get(TopicPartition(topic, number))
        if partition is not None:
            replicas.append(
                {
                    "broker": replica,
                    "log_start_offset": partition.log.log_start_offset,
                    "high_watermark": partition.log.high_watermark,
                    "log_end_offset": partition.log.log_end_offset,
                }
            )
    return {
        "partition": number,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
        "replicas": replicas,
    }


def purgatory_status(nodes: Nodes) -> dict[str, Any]:
    """Return every purgatory's sizes and the operations that are parked in it."""
    return {
        "brokers": [
            {
                "id": broker_id,
                "purgatories": [
                    {
                        "name": statistics.name,
                        "watched": statistics.watched,
                        "num_delayed": statistics.num_delayed,
                        "completed": statistics.completed,
                        "expired": statistics.expired,
                        "parked": [_plain(asdict(parked)) for parked in purgatory.parked()],
                    }
                    for purgatory in broker.purgatories
                    for statistics in [purgatory.statistics()]
                ],
            }
            for broker_id, broker in nodes.brokers.items()
        ]
    }


def _plain(parked: dict[str, Any]) -> dict[str, Any]:
    return {**parked, "keys": [str(key) for key in parked["keys"]]}

"""Who leads a partition now, for what is read where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.log import PartitionLog


def leads(nodes: Nodes, broker: Broker, topic: str, partition: int) -> bool:
    """Whether the broker leads it; one that was paused may not have heard that another does now."""
    state = nodes.controller.image.partition(TopicPartition(topic, partition))
    return state is not None and state.leader == broker.broker_id


def live_leader(nodes: Nodes, key: TopicPartition) -> Broker | None:
    """Return the broker that leads the partition, None without a live one."""
    state = nodes.controller.image.partition(key)
    return None if state is None else nodes.brokers.get(state.leader)


def leaders_log(nodes: Nodes, key: TopicPartition) -> PartitionLog | None:
    """Return the log of the partition's leader, None without a live one."""
    leader = live_leader(nodes, key)
    partition = None if leader is None else leader.replica_manager.partitions.get(key)
    return None if partition is None else partition.log

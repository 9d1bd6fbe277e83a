"""What must hold after every step of a simulated cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes import Nodes
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica import Partition

__all__ = ["InvariantChecker", "InvariantViolationError"]


class InvariantViolationError(AssertionError):
    """An invariant does not hold; the text says which and where."""


class InvariantChecker:
    """Looks at every hosted partition after each step.

    * the high watermark never exceeds the log end of any member of the leader's maximal ISR
    * the high watermark never goes back on a leader, within one leader epoch
    * log start <= last stable offset <= high watermark <= log end
    * two leaders of the same epoch do not exist
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._leader_hw: dict[tuple[TopicPartition, bytes, int, int], int] = {}
        self._leader_of_epoch: dict[tuple[TopicPartition, bytes, int], int] = {}

    def check(self) -> None:
        """Raise `InvariantViolationError` if something is wrong."""
        for broker in self._nodes.brokers.values():
            for partition in broker.replica_manager.partitions.values():
                self._check_offsets(broker, partition)
                if partition.is_leader:
                    self._check_leader(broker, partition)

    def _check_offsets(self, broker: Broker, partition: Partition) -> None:
        log = partition.log
        if not (
            log.log_start_offset
            <= log.last_stable_offset
            <= log.high_watermark
            <= log.log_end_offset
        ):
            raise InvariantViolationError(
                f"offsets out of order on broker {broker.broker_id}: {log}"
            )

    def _check_leader(self, broker: Broker, partition: Partition) -> None:
        key = (partition.topic_partition, partition.topic_id, partition.leader_epoch)
        other = self._leader_of_epoch.setdefault(key, broker.broker_id)
        if other != broker.broker_id:
            raise InvariantViolationError(
                f"brokers {other} and {broker.broker_id} both lead {partition.topic_partition} "
                f"in epoch {partition.leader_epoch}"
            )
        high_watermark = partition.log.high_watermark
        life = (*key[:2], partition.leader_epoch, id(broker))
        before = self._leader_hw.get(life, high_watermark)
        if high_watermark < before:
            raise InvariantViolationError(
                f"the high watermark of {partition.topic_partition} went back from {before} to "
                f"{high_watermark} on its leader {broker.broker_id}"
            )
        self._leader_hw[life] = high_watermark
        for member in partition.isr_state.maximal_isr:
            follower = self._nodes.nodes[member].logs.get(
                partition.topic_partition, partition.topic_id
            )
            if follower is not None and follower.log_end_offset < high_watermark:
                raise InvariantViolationError(
                    f"the high watermark {high_watermark} of {partition.topic_partition} on "
                    f"leader {broker.broker_id} is beyond the log end {follower.log_end_offset} "
                    f"of broker {member}, which is in its ISR"
                )

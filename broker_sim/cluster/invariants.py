"""What must hold after every step of a simulated cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log.changed_logs import INVARIANTS

if TYPE_CHECKING:
    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes import Nodes
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica import Partition

__all__ = ["InvariantChecker", "InvariantViolationError"]


class InvariantViolationError(AssertionError):
    """An invariant does not hold; the text says which and where.

    `invariant` is its short name, the same in every run.
    """

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(text)
        self.invariant = invariant


class InvariantChecker:
    """Looks after each step at the partitions whose logs have changed, and at all after new metadata.

    * the high watermark never exceeds the log end of any member of the leader's maximal ISR; a deposed
      leader that has not heard of its successor is excepted where elections may be unclean, since
      members of its ISR may have truncated their logs to that of the successor; and so is a member that
      has ever lost records with its power, and stays in the ISR until it registers again: its leaders may
      count for much longer what it has lost
    * high watermark and last stable offset never go back on a leader, within one leader epoch
    * log start <= last stable offset <= high watermark <= log end
    * two leaders of the same epoch do not exist
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._leader_hw: dict[tuple[TopicPartition, bytes, int, int], int] = {}
        self._leader_lso: dict[tuple[TopicPartition, bytes, int, int], int] = {}
        self._leader_of_epoch: dict[tuple[TopicPartition, bytes, int], int] = {}
        self._seen: list[tuple[int, int]] = []
        """The brokers that lived at the last step, with the versions of their metadata."""

    def check(self) -> None:
        """Raise `InvariantViolationError` if something is wrong."""
        changed = self._take_changed()
        brokers = self._nodes.brokers.values()
        seen = [(id(broker), broker.image.version) for broker in brokers]
        everything = seen != self._seen
        self._seen = seen
        for broker in brokers:
            partitions = broker.replica_manager.partitions
            for key in list(partitions) if everything else changed:
                partition = partitions.get(key)
                if partition is None:
                    continue
                self._check_offsets(broker, partition)
                if partition.is_leader:
                    self._check_leader(broker, partition)

    def _take_changed(self) -> set[TopicPartition]:
        changed: set[TopicPartition] = set()
        for node in self._nodes.nodes.values():
            logs = node.logs.changed.take(INVARIANTS)
            if logs:
                changed.update(log.topic_partition for log in logs)
        return changed

    def _check_offsets(self, broker: Broker, partition: Partition) -> None:
        log = partition.log
        if not (
            log.log_start_offset
            <= log.last_stable_offset
            <= log.high_watermark
            <= log.log_end_offset
        ):
            raise InvariantViolationError(
                "offsets-in-order",
                f"offsets out of order on broker {broker.broker_id}: {log}",
            )

    def _check_leader(self, broker: Broker, partition: Partition) -> None:
        key = (partition.topic_partition, partition.topic_id, partition.leader_epoch)
        other = self._leader_of_epoch.setdefault(key, broker.broker_id)
        if other != broker.broker_id:
            raise InvariantViolationError(
                "one-leader-per-epoch",
                f"brokers {other} and {broker.broker_id} both lead {partition.topic_partition} "
                f"in epoch {partition.leader_epoch}",
            )
        high_watermark = partition.log.high_watermark
        life = (*key[:2], partition.leader_epoch, id(broker))
        before = self._leader_hw.get(life, high_watermark)
        if high_watermark < before:
            raise InvariantViolationError(
                "high-watermark-goes-forward",
                f"the high watermark of {partition.topic_partition} went back from {before} to "
                f"{high_watermark} on its leader {broker.broker_id}",
            )
        self._leader_hw[life] = high_watermark
        stable = partition.log.last_stable_offset
        stable_before = self._leader_lso.get(life, stable)
        if stable < stable_before:
            raise InvariantViolationError(
                "last-stable-offset-goes-forward",
                f"the last stable offset of {partition.topic_partition} went back from "
                f"{stable_before} to {stable} on its leader {broker.broker_id}",
            )
        self._leader_lso[life] = stable
        for member in partition.isr_state.maximal_isr:
            node = self._nodes.nodes[member]
            follower = node.logs.get(partition.topic_partition, partition.topic_id)
            if (
                follower is not None
                and follower.log_end_offset < high_watermark
                and not self._may_be_replaced_uncleanly(broker, partition)
                and not node.has_lost_records(partition.topic_partition)
            ):
                raise InvariantViolationError(
                    "high-watermark-within-isr",
                    f"the high watermark {high_watermark} of {partition.topic_partition} on "
                    f"leader {broker.broker_id} is beyond the log end {follower.log_end_offset} "
                    f"of broker {member}, which is in its ISR",
                )

    def _may_be_replaced_uncleanly(self, broker: Broker, partition: Partition) -> bool:
        """Whether another leader has been elected, and its election may have been unclean."""
        topic = self._nodes.controller.image.topics.get(partition.topic_partition.topic)
        return (
            topic is not None
            and self._is_replaced(partition)
            and broker.metadata.topic_config(topic).unclean_leader_election_enable
        )

    def _is_replaced(self, partition: Partition) -> bool:
        """Whether another leader has been elected."""
        state = self._nodes.controller.image.partition(partition.topic_partition)
        return state is not None and state.leader_epoch > partition.leader_epoch

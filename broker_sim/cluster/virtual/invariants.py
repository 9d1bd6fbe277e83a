"""What must hold after every step of a simulated cluster."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker_sim.log.log_offsets import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.metadata.image import MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica import Partition


class InvariantViolationError(AssertionError):
    """An invariant does not hold; the text says which and where.

    `invariant` is its short name, the same in every run.
    """

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(text)
        self.invariant = invariant


_LEFT_OUT: set[str] = set()
"""Those that are not looked at just now; see `left_out`."""


def violated(invariant: str, text: str) -> None:
    """Raise InvariantViolationError, unless the invariant is left out."""
    if invariant not in _LEFT_OUT:
        raise InvariantViolationError(invariant, text)


@contextmanager
def left_out(*invariants: str) -> Iterator[None]:
    """Go on where these do not hold: what else finds a defect tells whether they are needed."""
    _LEFT_OUT.update(invariants)
    try:
        yield
    finally:
        _LEFT_OUT.difference_update(invariants)


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
        self._node_list = list(nodes.nodes.values())
        self._seen: dict[Broker, MetadataImage] = {}
        """The brokers that lived at the last step, with their metadata."""
        self.renewed: tuple[Broker, ...] = ()
        """Those of them that were started in that step, or heard of new metadata."""

    def check(self) -> None:
        """Raise `InvariantViolationError` if something is wrong."""
        # After most steps nothing has changed, and most of the time of a run would go here.
        self.renewed = ()
        everything = self._has_news()
        if not everything:
            for node in self._node_list:
                if node.logs.changed.has_news_for(INVARIANTS):
                    break
            else:
                return
        changed = self._take_changed()
        brokers = self._nodes.brokers.values()
        if everything:
            seen = {broker: broker.metadata.image for broker in brokers}
            before = self._seen
            self.renewed = tuple([one for one, image in seen.items() if before.get(one) is not image])
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

    def _has_news(self) -> bool:
        """Whether a broker was started or has died, or has heard of new metadata."""
        seen, brokers = self._seen, self._nodes.brokers
        has_news = len(seen) != len(brokers)
        for broker in brokers.values():
            has_news = has_news or seen.get(broker) is not broker.metadata.image
        return has_news

    def _take_changed(self) -> set[TopicPartition]:
        changed: set[TopicPartition] = set()
        for node in self._node_list:
            if node.logs.changed.has_news_for(INVARIANTS):
                logs = node.logs.changed.take(INVARIANTS)
                changed.update(log.topic_partition for log in logs)
        return changed

    def _check_offsets(self, broker: Broker, partition: Partition) -> None:
        log = partition.log
        if not (log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset):
            violated("offsets-in-order", f"offsets out of order on broker {broker.broker_id}: {log}")

    def _check_leader(self, broker: Broker, partition: Partition) -> None:
        key = (partition.topic_partition, partition.topic_id, partition.leader_epoch)
        other = self._leader_of_epoch.setdefault(key, broker.broker_id)
        if other != broker.broker_id:
            violated(
                "one-leader-per-epoch",
                f"brokers {other} and {broker.broker_id} both lead {partition.topic_partition} "
                f"in epoch {partition.leader_epoch}",
            )
        high_watermark = partition.log.high_watermark
        life = (*key[:2], partition.leader_epoch, id(broker))
        before = self._leader_hw.get(life, high_watermark)
        if high_watermark < before:
            violated(
                "high-watermark-goes-forward",
                f"the high watermark of {partition.topic_partition} went back from {before} to "
                f"{high_watermark} on its leader {broker.broker_id}",
            )
        self._leader_hw[life] = high_watermark
        stable = partition.log.last_stable_offset
        stable_before = self._leader_lso.get(life, stable)
        if stable < stable_before:
            violated(
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
                violated(
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

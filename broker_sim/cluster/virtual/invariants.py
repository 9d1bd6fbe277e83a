"""The invariants of a simulated cluster and of its delayed operations, checked after every step."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from broker_sim_purgatory import KeySet

from broker_sim.log.log_offsets import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from broker_sim_purgatory import Clock, DelayedOperation, DelayedOperationPurgatory

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.metadata.image import MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica import Partition
    from broker_sim.runtime.virtual import LoopTrace


class InvariantViolationError(AssertionError):
    """An invariant does not hold; the text says which and where.

    `invariant` is its short name, the same in all runs.
    """

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(text)
        self.invariant = invariant


_LEFT_OUT: set[str] = set()
"""The invariants that are not checked now; see `left_out`."""


def violated(invariant: str, text: str) -> None:
    """Raise InvariantViolationError, unless the invariant is left out."""
    if invariant not in _LEFT_OUT:
        raise InvariantViolationError(invariant, text)


@contextmanager
def left_out(*invariants: str) -> Iterator[None]:
    """Skip these invariants in the block, to learn whether others find a defect too."""
    _LEFT_OUT.update(invariants)
    try:
        yield
    finally:
        _LEFT_OUT.difference_update(invariants)


class InvariantChecker:
    """Checks after each step the partitions whose logs have changed, and all partitions after new metadata.

    * the high watermark never exceeds the log end of any member of the leader's maximal ISR. Two exceptions: a
      deposed leader that does not know its successor, if elections may be unclean, since members of its ISR may have
      truncated their logs to the successor's; and a member that has ever lost records in a power failure, which
      stays in the ISR until it registers again, so leaders may long count the lost records
    * high watermark and last stable offset never go back on a leader, within one leader epoch
    * log start <= last stable offset <= high watermark <= log end
    * two leaders of the same epoch do not exist
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._leader_hw: dict[tuple[TopicPartition, bytes, int, int], int] = {}
        self._leader_lso: dict[tuple[TopicPartition, bytes, int, int], int] = {}
        self._leader_of_epoch: dict[tuple[TopicPartition, bytes, int], int] = {}
        self._images: dict[Broker, MetadataImage] = {}
        """The brokers that lived at the last step, with their metadata."""
        self.renewed: tuple[Broker, ...] = ()
        """The brokers that were started in the last step, or received new metadata."""

    def check(self) -> None:
        """Raise `InvariantViolationError` if an invariant does not hold."""
        # After most steps nothing has changed; without this test most of a run would be spent here.
        self.renewed = ()
        everything = self._has_news()
        if not everything:
            for node in self._nodes.nodes.values():
                if node.logs.changed.has_news_for(INVARIANTS):
                    break
            else:
                return
        changed = self._take_changed()
        brokers = self._nodes.brokers.values()
        if everything:
            images = {broker: broker.metadata.image for broker in brokers}
            before = self._images
            self.renewed = tuple([one for one, image in images.items() if before.get(one) is not image])
            self._images = images
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
        """Whether a broker was started, died, or received new metadata."""
        images, brokers = self._images, self._nodes.brokers
        has_news = len(images) != len(brokers)
        for broker in brokers.values():
            has_news = has_news or images.get(broker) is not broker.metadata.image
        return has_news

    def _take_changed(self) -> set[TopicPartition]:
        changed: set[TopicPartition] = set()
        for node in self._nodes.nodes.values():
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
            node = self._nodes.nodes.get(member)
            if node is None:
                continue  # removed, and the leader does not know yet
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


class OperationWatches:
    """The observers of purgatories that write into one trace."""

    def __init__(self, trace: LoopTrace) -> None:
        self._trace = trace
        self._watches: dict[tuple[int, str], OperationWatch] = {}

    def observer(self, purgatory: str, broker_id: int, clock: Clock) -> OperationWatch:
        """Return the observer of a purgatory, for one run of its broker's process."""
        watch = OperationWatch(f"{broker_id}/{purgatory}", self._trace, clock)
        self._watches[broker_id, purgatory] = watch
        return watch

    def oldest_deadline_ms(self, broker_id: int) -> int | None:
        """Return the first deadline of the broker's parked operations in ms, None without any."""
        deadlines = [
            watch.oldest_deadline_ms
            for (watched_broker, _), watch in self._watches.items()
            if watched_broker == broker_id
        ]
        return min((each for each in deadlines if each is not None), default=None)


class OperationWatch:
    """Records each step of the operations of one purgatory, and checks that each ends once."""

    def __init__(self, label: str, trace: LoopTrace, clock: Clock) -> None:
        self._label = label
        self._record = trace.record
        self._clock = clock
        self._open: set[int] = set()
        self._deadlines_ms: dict[int, int] = {}
        self._reported_sizes: dict[KeySet[Any], int] = {}
        """The version of each key set whose keys have been recorded."""

    @property
    def oldest_deadline_ms(self) -> int | None:
        """The first deadline of the parked operations in ms, None without any."""
        return min(self._deadlines_ms.values(), default=None)

    def attach(self, purgatory: DelayedOperationPurgatory[Any]) -> None:
        """Do nothing: no figures of the purgatory are recorded."""

    def tried(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        """Record that an operation is tried for the first time."""
        self._open.add(operation.operation_id)
        if isinstance(keys, KeySet):
            if self._reported_sizes.get(keys) == keys.version:
                self._record(self._label, operation.operation_id, "tried", "same keys", len(keys))
                return
            self._reported_sizes[keys] = keys.version
        self._record(self._label, operation.operation_id, "tried", *map(str, keys))

    def parked(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        """Record that an operation has to wait."""
        self._record(self._label, operation.operation_id, "parked", len(keys))
        deadline_ms = self._clock.deadline_ms(operation.delay_ms)
        self._deadlines_ms[operation.operation_id] = deadline_ms

    def completed(self, operation: DelayedOperation, by: str, /) -> None:
        """Record that an operation was completed before its deadline."""
        self._end(operation, "completed", by)

    def expired(self, operation: DelayedOperation, lateness_ms: int, /) -> None:
        """Record that an operation has expired."""
        self._end(operation, "expired", lateness_ms)

    def cancelled(self, operation: DelayedOperation, /) -> None:
        """Record that an operation was dropped."""
        self._end(operation, "cancelled", "")

    def _end(self, operation: DelayedOperation, how: str, detail: object) -> None:
        self._record(self._label, operation.operation_id, how, detail)
        if operation.operation_id not in self._open:
            violated("operation-ends-once", f"operation {operation.operation_id} of {self._label} ended twice")
        self._open.discard(operation.operation_id)
        self._deadlines_ms.pop(operation.operation_id, None)

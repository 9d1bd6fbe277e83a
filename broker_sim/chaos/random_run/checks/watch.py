"""Invariants during a random run, beyond those of every simulated cluster.

`InvariantChecker` checks single brokers and high watermarks after every step. Here every new metadata image is
compared with the previous one, and the logs of the replicas with each other every few milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.random_run.checks.batches import batches_of
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.nodes.node import kept_batches
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.errors import ApiError
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header, verify_crc
from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.chaos.random_run.checks.history import HighWatermarks
    from broker_sim.chaos.random_run.disturbances import Disturbances
    from broker_sim.chaos.random_run.schedule import Schedule
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
    from broker_sim.log import PartitionLog
    from broker_sim.metadata import MetadataImage, PartitionState
    from broker_sim.replica import Partition

LAG_TIME_MAX_MS: Final = 500
"""The `replica.lag.time.max.ms` of random runs."""
PERIOD_MS: Final = 50
COMPARE_EVERY: Final = 5
SHRINK_LIMIT_MS: Final = LAG_TIME_MAX_MS * 2 + 300
"""Maximum time until the ISR shrinks: a leader checks every half lag time, and may miss a check during a change."""
OPERATION_SLACK_MS: Final = 5
"""Maximum lateness of a parked operation in ms; timers have ticks of 1 ms."""


def check_recovered(cluster: VirtualCluster, schedule: Schedule, broker_id: int) -> None:
    """Check the logs of a broker that has just been started.

    Every batch must match its CRC; and if each append was flushed, nothing may be lost.
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


class Watch:
    """Checks one cluster from its topic's creation on; raises InvariantViolationError."""

    def __init__(
        self, cluster: VirtualCluster, schedule: Schedule, disturbances: Disturbances, high_watermarks: HighWatermarks
    ) -> None:
        self._cluster = cluster
        self._disturbances = disturbances
        self._high_watermarks = high_watermarks
        self._image = image = cluster.nodes.controller.image
        self._partitions = [
            _PartitionWatch(TopicPartition(TOPIC, number), state, cluster, schedule, disturbances)
            for number, state in enumerate(image.topics[TOPIC].partitions)
        ]
        self._rounds = 0

    def start(self) -> None:
        """Check now and every `PERIOD_MS` from now on."""
        self._cluster.scheduler.call_later(PERIOD_MS, self.start)
        self.check_image()
        self._check_operations()
        self._rounds += 1
        for number, partition in enumerate(self._partitions):
            leader = partition.find_leader()
            if leader is not None:
                self._high_watermarks.note(leader.broker_id, number, self._cluster.now_ms, leader.log.high_watermark)
                partition.check_leader(leader)
                if self._rounds % COMPARE_EVERY == 0:
                    partition.compare_replicas(leader)

    def check_image(self) -> None:
        """Compare the controller's image with that of the last call; cheap if it is the same."""
        image = self._cluster.nodes.controller.image
        if image is not self._image:
            self._image = image
            for partition in self._partitions:
                partition.check_image(image)

    def _check_operations(self) -> None:
        for broker_id, node in self._cluster.nodes.nodes.items():
            process = node.process
            if process is None or process.state is not ProcessState.RUNNING or process.is_blocked:
                continue
            deadline_ms = self._cluster.inside.operations.oldest_deadline_ms(broker_id)
            if deadline_ms is None:
                continue
            late_ms = self._cluster.now_ms - deadline_ms - self._disturbances.paused_ms[broker_id]
            if late_ms > OPERATION_SLACK_MS:
                violated(
                    "operations-end-in-time", f"an operation of broker {broker_id} should have ended {late_ms} ms ago"
                )


@dataclass(slots=True)
class _PartitionWatch:
    """Checks one partition against its earlier states."""

    key: TopicPartition
    state: PartitionState
    """State in the newest image."""
    cluster: VirtualCluster
    schedule: Schedule
    disturbances: Disturbances
    committed: list[bytes | memoryview] = field(default_factory=list)
    """All batches that were ever below a high watermark."""
    led: tuple[int, int] | None = None
    """The leader at the last check, and its epoch."""
    leader_ends: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """(time, log end offset) of the leader, by leader epoch."""
    joined_ms: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Time in ms when each replica was last outside the ISR."""
    under_min_isr: tuple[int, int, int] | None = None
    """The leader's epochs and high watermark, if too few replicas were in sync at the last check."""

    @property
    def may_lose(self) -> bool:
        """Whether committed records may be lost."""
        return self.schedule.unclean_elections or self.schedule.may_lose_records

    # -- metadata -----------------------------------------------------------------------------------

    def check_image(self, image: MetadataImage) -> None:
        """Compare an image with the previous one."""
        old, new = self.state, image.topics[TOPIC].partitions[self.key.partition]
        self.state = new
        if old is not new:
            self._check_election(old, new)
        dead = [member for member in new.isr if not image.brokers[member].is_active]
        if dead:
            violated("isr-is-live", f"{dead} are in the ISR of {self.key}, and fenced or shutting down: {new}")

    def _check_election(self, old: PartitionState, new: PartitionState) -> None:
        if new.leader_epoch < old.leader_epoch or new.partition_epoch < old.partition_epoch:
            violated("epochs-grow", f"{self.key} went from {old} to {new}")
        if new.leader == old.leader or not new.has_leader:
            return
        if new.leader_epoch == old.leader_epoch:
            violated("one-leader-per-epoch", f"{self.key} has a new leader in an old epoch: {old}, {new}")
        if self.schedule.unclean_elections or new.leader in old.isr:
            return
        # Elected with an empty ISR, the leader is all of it, until a later change.
        is_alone = new.isr == (new.leader,) or new.partition_epoch > old.partition_epoch + 1
        if new.leader in old.elr and is_alone:
            return
        # If no replica is eligible, the last leader may lead again, because no other has led since.
        if new.elr or not is_alone or new.leader not in old.last_known_elr:
            violated(
                "leader-is-eligible",
                f"{new.leader} was elected for {self.key}, with ISR {old.isr}, ELR {old.elr} and last "
                f"leader {old.last_known_elr}",
            )

    # -- the leader's log -----------------------------------------------------------------------------

    def find_leader(self) -> Partition | None:
        """Return the partition at its leader, if the leader knows that it leads."""
        broker = self.cluster.nodes.brokers.get(self.state.leader)
        partition = None if broker is None else broker.replica_manager.partitions.get(self.key)
        if partition is None or not partition.is_leader:
            return None
        return partition if partition.leader_epoch == self.state.leader_epoch else None

    def check_leader(self, leader: Partition) -> None:
        """Compare the leader's log with the previous leader's, and with its ISR."""
        led = (leader.broker_id, leader.leader_epoch)
        if self.led != led and not self.may_lose:
            self._check_leader_is_complete(leader)
        self.led = led
        committed = batches_of(leader.log, leader.log.high_watermark)
        if len(committed) > len(self.committed) or self.may_lose:
            self.committed = committed
        self._check_min_isr(leader)
        self._check_isr_shrinks(leader)

    def _check_leader_is_complete(self, leader: Partition) -> None:
        if batches_of(leader.log)[: len(self.committed)] != self.committed:
            violated(
                "leader-is-complete",
                f"the log of {self.key} on its new leader {leader.broker_id} lacks records that were "
                "below a high watermark",
            )

    def _check_min_isr(self, leader: Partition) -> None:
        """Check that the high watermark does not advance while too few replicas are in sync (KIP-966)."""
        high_watermark = leader.log.high_watermark
        before, self.under_min_isr = self.under_min_isr, None
        if len(leader.isr_state.isr) >= leader.effective_min_isr:
            return
        epochs = (leader.leader_epoch, leader.partition_epoch)
        if before is not None and before[:2] == epochs and before[2] < high_watermark:
            violated(
                "high-watermark-waits-for-min-isr",
                f"the high watermark of {self.key} went from {before[2]} to {high_watermark} with "
                f"{sorted(leader.isr_state.isr)} in sync",
            )
        self.under_min_isr = (*epochs, high_watermark)

    # -- the replicas' logs ---------------------------------------------------------------------------

    def _logs_in_sync(self, leader: Partition) -> Iterator[tuple[int, PartitionLog]]:
        """Yield the members of the ISR that have lost no records, with their logs."""
        for member in self.state.isr:
            node = self.cluster.nodes.nodes[member]
            log = node.logs.get(self.key, leader.topic_id)
            if log is not None and not node.has_lost_records(self.key):
                yield member, log

    def compare_replicas(self, leader: Partition) -> None:
        """Compare the logs of the ISR below the high watermark."""
        committed = batches_of(leader.log, leader.log.high_watermark)
        for member, log in self._logs_in_sync(leader):
            if batches_of(log)[: len(committed)] != committed:
                violated(
                    "replicas-agree",
                    f"the logs of {self.key} on leader {leader.broker_id} and on {member}, which is in "
                    f"sync, differ below the high watermark {leader.log.high_watermark}",
                )

    def _check_isr_shrinks(self, leader: Partition) -> None:
        """Check that no follower stays in the ISR if it lacks records that the leader has had for too long."""
        now_ms = self.cluster.now_ms
        for replica in self.state.replicas:
            if replica not in self.state.isr:
                # To join the ISR it only has to reach the high watermark, which may be far behind.
                self.joined_ms[replica] = now_ms
        # Recorded even while the leader is disturbed: records of that time may be missing afterwards.
        limit_ms = now_ms - SHRINK_LIMIT_MS
        end = self._end_at(limit_ms, leader)
        if not self.disturbances.is_undisturbed(leader.broker_id, limit_ms):
            return
        if not self.cluster.nodes.brokers[leader.broker_id].is_serving:
            # Started again within its old session: it leads, but no follower reaches it, and the
            # controller refuses its ISR changes with STALE_BROKER_EPOCH until it has registered.
            return
        for member, log in self._logs_in_sync(leader):
            if log.log_end_offset < end and self.joined_ms[member] <= limit_ms:
                violated(
                    "isr-shrinks",
                    f"broker {member} is in the ISR of {self.key}, and its log ends at "
                    f"{log.log_end_offset}: {SHRINK_LIMIT_MS} ms ago its leader {leader.broker_id} had "
                    f"records up to {end}",
                )

    def _end_at(self, time_ms: int, leader: Partition) -> int:
        """Return the leader's log end offset at that time; -1 if it did not lead then."""
        ends = self.leader_ends[leader.leader_epoch]
        if not ends or ends[-1][1] != leader.log.log_end_offset:
            ends.append((self.cluster.now_ms, leader.log.log_end_offset))
        while len(ends) > 1 and ends[1][0] <= time_ms:
            del ends[0]
        return ends[0][1] if ends[0][0] <= time_ms else -1

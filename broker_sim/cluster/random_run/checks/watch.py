"""What must hold while a random run goes on, beyond what every simulated cluster is checked for.

`InvariantChecker` looks after every step at single brokers and at high watermarks. Here every new
image of the metadata is compared with the one before, and the logs of the replicas with each other
every few milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.cluster.random_run.checks.batches import batches_of
from broker_sim.cluster.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from broker_sim.cluster.random_run.checks.high_watermarks import HighWatermarks
    from broker_sim.cluster.random_run.disturbances import Disturbances
    from broker_sim.cluster.random_run.schedule import Schedule
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
    from broker_sim.metadata import MetadataImage, PartitionState
    from broker_sim.replica import Partition

__all__ = ["LAG_TIME_MAX_MS", "Watch"]

LAG_TIME_MAX_MS: Final = 500
"""The `replica.lag.time.max.ms` of random runs."""
PERIOD_MS: Final = 50
COMPARE_EVERY: Final = 5
SHRINK_LIMIT_MS: Final = LAG_TIME_MAX_MS * 2 + 300
"""A leader checks every half lag time, and misses one check while another change is in flight."""
OPERATION_SLACK_MS: Final = 5
"""How much later than its delay a parked operation may end: its timers have ticks of 1 ms."""


class Watch:
    """Looks at one cluster from its topic's creation on; raises InvariantViolationError."""

    def __init__(
        self,
        cluster: VirtualCluster,
        schedule: Schedule,
        disturbances: Disturbances,
        high_watermarks: HighWatermarks,
    ) -> None:
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._disturbances = disturbances
        self._high_watermarks = high_watermarks
        self._unclean = schedule.unclean_elections
        self._may_lose = schedule.unclean_elections or schedule.may_lose_records
        self._keys = [TopicPartition(TOPIC, number) for number in range(schedule.partitions)]
        self._image = self._nodes.controller.image
        self._committed: dict[TopicPartition, list[bytes | memoryview]] = {
            key: [] for key in self._keys
        }
        self._led: dict[TopicPartition, tuple[int, int]] = {}
        self._leader_ends: dict[tuple[TopicPartition, int], list[tuple[int, int]]] = {}
        self._joined_ms: dict[tuple[TopicPartition, int], int] = {}
        self._under_min_isr: dict[TopicPartition, tuple[tuple[int, int], int]] = {}
        self._rounds = 0

    def start(self) -> None:
        """Check now and every `PERIOD_MS` from now on."""
        self._cluster.scheduler.call_later(PERIOD_MS, self.start)
        self.check_image()
        self._check_operations()
        self._rounds += 1
        for key in self._keys:
            state = self._image.partition(key)
            assert state is not None
            self._check_partition(key, state)

    # -- metadata -----------------------------------------------------------------------------------

    def check_image(self) -> None:
        """Compare the controller's image with the one of the last call; cheap without a new one."""
        image = self._nodes.controller.image
        before, self._image = self._image, image
        if before is image:
            return
        for key in self._keys:
            old, new = before.partition(key), image.partition(key)
            assert old is not None
            assert new is not None
            if old is not new:
                self._check_election(key, old, new)
            self._check_isr_is_live(key, new, image)

    def _check_election(
        self, key: TopicPartition, old: PartitionState, new: PartitionState
    ) -> None:
        if new.leader_epoch < old.leader_epoch or new.partition_epoch < old.partition_epoch:
            violated("epochs-grow", f"{key} went from {old} to {new}")
        if new.leader == old.leader or not new.has_leader:
            return
        if new.leader_epoch == old.leader_epoch:
            violated(
                "one-leader-per-epoch", f"{key} has a new leader in an old epoch: {old}, {new}"
            )
        if self._unclean or new.leader in old.isr:
            return
        # Elected with an empty ISR, the leader is all of it, until a later change.
        is_alone = new.isr == (new.leader,) or new.partition_epoch > old.partition_epoch + 1
        if new.leader in old.elr and is_alone:
            return
        # With nobody eligible left, the last leader may lead again: no other one has led since.
        if new.elr or not is_alone or new.leader not in old.last_known_elr:
            violated(
                "leader-is-eligible",
                f"{new.leader} was elected for {key}, with ISR {old.isr}, ELR {old.elr} and last "
                f"leader {old.last_known_elr}",
            )

    def _check_isr_is_live(
        self, key: TopicPartition, state: PartitionState, image: MetadataImage
    ) -> None:
        dead = [member for member in state.isr if not image.brokers[member].is_active]
        if dead:
            violated(
                "isr-is-live",
                f"{dead} are in the ISR of {key}, and fenced or shutting down: {state}",
            )

    # -- operations ---------------------------------------------------------------------------------

    def _check_operations(self) -> None:
        now_ms = self._cluster.now_ms
        for broker_id, node in self._nodes.nodes.items():
            process = node.process
            if process is None or process.state is not ProcessState.RUNNING or process.is_blocked:
                continue
            deadline_ms = self._cluster.inside.operations.oldest_deadline_ms(broker_id)
            if deadline_ms is None:
                continue
            late_ms = now_ms - deadline_ms - self._disturbances.paused_ms[broker_id]
            if late_ms > OPERATION_SLACK_MS:
                violated(
                    "operations-end-in-time",
                    f"an operation of broker {broker_id} should have ended {late_ms} ms ago",
                )

    # -- logs -----------------------------------------------------------------------------------------

    def _check_partition(self, key: TopicPartition, state: PartitionState) -> None:
        leader = self._leading(key, state)
        if leader is None:
            return
        self._high_watermarks.note(
            leader.broker_id, key.partition, self._cluster.now_ms, leader.log.high_watermark
        )
        if self._led.get(key) != (state.leader, state.leader_epoch):
            self._led[key] = (state.leader, state.leader_epoch)
            if not self._may_lose:
                self._check_leader_is_complete(key, leader)
        self._remember_committed(key, leader)
        self._check_min_isr(key, leader)
        self._check_isr_shrinks(key, state, leader)
        if self._rounds % COMPARE_EVERY == 0:
            self._compare_replicas(key, state, leader)

    def _leading(self, key: TopicPartition, state: PartitionState) -> Partition | None:
        """Return the partition at its leader, if that knows that it leads."""
        broker = self._nodes.brokers.get(state.leader)
        partition = None if broker is None else broker.replica_manager.partitions.get(key)
        if partition is None or not partition.is_leader:
            return None
        return partition if partition.leader_epoch == state.leader_epoch else None

    def _check_leader_is_complete(self, key: TopicPartition, leader: Partition) -> None:
        committed = self._committed[key]
        if batches_of(leader.log)[: len(committed)] != committed:
            violated(
                "leader-is-complete",
                f"the log of {key} on its new leader {leader.broker_id} lacks records that were below "
                "a high watermark",
            )

    def _remember_committed(self, key: TopicPartition, leader: Partition) -> None:
        committed = batches_of(leader.log, leader.log.high_watermark)
        if len(committed) > len(self._committed[key]) or self._may_lose:
            self._committed[key] = committed

    def _check_min_isr(self, key: TopicPartition, leader: Partition) -> None:
        """Check that the high watermark stands while too few replicas are in sync (KIP-966)."""
        high_watermark = leader.log.high_watermark
        before = self._under_min_isr.pop(key, None)
        if len(leader.isr_state.isr) >= leader.effective_min_isr:
            return
        epochs = (leader.leader_epoch, leader.partition_epoch)
        if before is not None and before[0] == epochs and before[1] < high_watermark:
            violated(
                "high-watermark-waits-for-min-isr",
                f"the high watermark of {key} went from {before[1]} to {high_watermark} with "
                f"{sorted(leader.isr_state.isr)} in sync",
            )
        self._under_min_isr[key] = (epochs, high_watermark)

    def _compare_replicas(
        self, key: TopicPartition, state: PartitionState, leader: Partition
    ) -> None:
        committed = batches_of(leader.log, leader.log.high_watermark)
        for member in state.isr:
            node = self._nodes.nodes[member]
            log = None if node.has_lost_records(key) else node.logs.get(key, leader.topic_id)
            if log is not None and batches_of(log)[: len(committed)] != committed:
                violated(
                    "replicas-agree",
                    f"the logs of {key} on leader {state.leader} and on {member}, which is in sync, "
                    f"differ below the high watermark {leader.log.high_watermark}",
                )

    # -- the ISR shrinks ------------------------------------------------------------------------------

    def _check_isr_shrinks(
        self, key: TopicPartition, state: PartitionState, leader: Partition
    ) -> None:
        """Check that no follower stays in the ISR that lacks what the leader has had for too long."""
        now_ms = self._cluster.now_ms
        for replica in state.replicas:
            if replica not in state.isr:
                # To join it needs no more than the high watermark, which may be far behind.
                self._joined_ms[key, replica] = now_ms
        # Also while nothing is held against the leader: what it has then may be missing afterwards.
        end = self._end_before(key, state, leader, now_ms)
        if not self._disturbances.is_undisturbed(state.leader, now_ms - SHRINK_LIMIT_MS):
            return
        if not self._nodes.brokers[state.leader].is_serving:
            # Started again within its old session: it leads, but no follower reaches it, and the
            # controller refuses its ISR changes with STALE_BROKER_EPOCH until it has registered.
            return
        for member in state.isr:
            if self._joined_ms.get((key, member), 0) > now_ms - SHRINK_LIMIT_MS:
                continue
            node = self._nodes.nodes[member]
            log = None if node.has_lost_records(key) else node.logs.get(key, leader.topic_id)
            if log is not None and log.log_end_offset < end:
                violated(
                    "isr-shrinks",
                    f"broker {member} is in the ISR of {key}, and its log ends at "
                    f"{log.log_end_offset}: {SHRINK_LIMIT_MS} ms ago its leader {state.leader} had "
                    f"records up to {end}",
                )

    def _end_before(
        self, key: TopicPartition, state: PartitionState, leader: Partition, now_ms: int
    ) -> int:
        """Return where the leader's log ended `SHRINK_LIMIT_MS` ago; -1 if it did not lead then."""
        ends = self._leader_ends.setdefault((key, state.leader_epoch), [])
        if not ends or ends[-1][1] != leader.log.log_end_offset:
            ends.append((now_ms, leader.log.log_end_offset))
        while len(ends) > 1 and ends[1][0] <= now_ms - SHRINK_LIMIT_MS:
            del ends[0]
        return ends[0][1] if ends[0][0] <= now_ms - SHRINK_LIMIT_MS else -1

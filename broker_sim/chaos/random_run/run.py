"""Runs a schedule on a cluster in virtual time and checks all invariants.

During the run: `InvariantChecker` after every step, `Watch` every few milliseconds and at every new
image, and the clients at every response. At the end all faults are undone; then the cluster has to be
in sync within `RECOVERY_LIMIT_MS`, and `check_end` checks the logs.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.random_run.checks.coordinators import LostLoads
from broker_sim.chaos.random_run.checks.end_checks import (
    check_end,
    check_group,
    check_transactions,
    replicas_are_equal,
    transactions_are_decided,
    without_letter,
)
from broker_sim.chaos.random_run.checks.streams_groups import LOAD_LIMIT_MS, NextCoordinator, streams_group_is_stable
from broker_sim.chaos.random_run.checks.transaction_history import Outcome
from broker_sim.chaos.random_run.checks.watch import LAG_TIME_MAX_MS, Watch, check_recovered
from broker_sim.chaos.random_run.clients.classic_member import GROUP, ClassicMember
from broker_sim.chaos.random_run.clients.consumer import CommittedReader, Consumer
from broker_sim.chaos.random_run.clients.consumer_member import CONSUMER_GROUP, ConsumerMember
from broker_sim.chaos.random_run.clients.group_member import SESSION_TIMEOUT_MS
from broker_sim.chaos.random_run.clients.producer import Producer
from broker_sim.chaos.random_run.clients.share_member import DEAD_LETTERS, SHARE_GROUP, ShareMember
from broker_sim.chaos.random_run.clients.shared_state import SharedState
from broker_sim.chaos.random_run.clients.streams_member import STREAMS_GROUP, StreamsMember
from broker_sim.chaos.random_run.clients.transactional_producer import LONGEST_TIMEOUT_MS, TransactionalProducer
from broker_sim.chaos.random_run.disturbances import Disturbances
from broker_sim.chaos.random_run.schedule import FLUSHED, LYING, MEMORY, TOPIC, Schedule
from broker_sim.cluster.virtual.invariants import InvariantViolationError, violated
from broker_sim.cluster.virtual.virtual_cluster import SimulationError, VirtualCluster
from broker_sim.controller import FeatureUpdate, UpgradeType
from broker_sim.log import DiskOptions
from broker_sim.metadata.feature_names import TRANSACTION_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.chaos.random_run.checks.history import Acknowledged
    from broker_sim.share.dead_letters.dead_letter_queue import DeadLetterQueue, NoOpDeadLetterQueue

CONFIGS: Final = {
    "replica.lag.time.max.ms": LAG_TIME_MAX_MS,
    "replica.fetch.wait.max.ms": 200,
    "replica.fetch.backoff.ms": 100,
    "replica.socket.timeout.ms": 1_500,
    "replica.high.watermark.checkpoint.interval.ms": 1_000,
    "broker.session.timeout.ms": 1_500,
    "broker.heartbeat.interval.ms": 400,
    "unclean.leader.election.interval.ms": 1_000,
    "log.initial.task.delay.ms": 1_000,
    "group.min.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.initial.rebalance.delay.ms": 300,
    "group.consumer.min.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.consumer.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.assignment.interval.ms": 100,
    "group.streams.min.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.streams.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.streams.min.heartbeat.interval.ms": 200,
    "group.streams.heartbeat.interval.ms": 200,
    "group.streams.assignment.interval.ms": 100,
    "group.streams.initial.rebalance.delay.ms": 300,
    "group.share.min.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.share.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.share.min.heartbeat.interval.ms": 200,
    "group.share.heartbeat.interval.ms": 200,
    "group.share.assignment.interval.ms": 100,
    "group.share.min.record.lock.duration.ms": 1_000,
    "group.share.record.lock.duration.ms": 1_000,
    "share.coordinator.state.topic.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "offsets.commit.timeout.ms": 1_000,
    "transaction.state.log.num.partitions": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 300,
    "request.timeout.ms": 1_500,
}
"""Configurations of every run: timeouts short enough that all of them end within seconds."""
FLUSH_CONFIGS: Final = {"log.flush.interval.messages": 1}
RECOVERY_LIMIT_MS: Final = 6_000
CALM_MS: Final = 1_000
"""Time in ms that clients continue after the recovery, in which every request must be answered."""
STABLE_LIMIT_MS: Final = 8_000
"""Maximum time in ms until a streams group is stable: silent members are fenced and come back."""
ANSWER_LIMIT_MS: Final = 3_000
LETTERS_LIMIT_MS: Final = 45_000
"""Maximum time until dead letters are written after the last fault: brokers try five times, with longer waits."""
LETTERS_LOOK_MS: Final = 500
END_LIMIT_MS: Final = LONGEST_TIMEOUT_MS + 2_500
"""Maximum time in ms that a transaction is open after the recovery: its timeout and the time to end it."""
SHOWN_EVENTS: Final = 30
LONGEST_ACTION_MS: Final = 60_000


class RunFailedError(SimulationError):
    """A run has failed; `invariant` is the short name of the violated invariant."""

    def __init__(self, schedule: Schedule, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.schedule = schedule
        self.invariant = invariant


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The result of a passed run; `digest` is the hash of its whole trace."""

    seed: int
    digest: str
    acknowledged: int
    """Number of acknowledged batches of producers without transactions."""
    actions: int
    generations: int
    epochs: int
    streams_epochs: int
    commits: int
    transactions_committed: int
    transactions_aborted: int
    transactions_in_doubt: int
    rejected: int
    """Number of records that a share group has rejected; each has a dead letter."""
    producers_fenced: int
    lost: tuple[Acknowledged, ...] = ()
    """Acknowledged records lost in power failures, on disks that were not flushed."""


def run_schedule(schedule: Schedule) -> RunSummary:
    """Run a schedule to its end; raises RunFailedError if an invariant is violated."""
    run = _Run(schedule)
    try:
        run.run()
    except (SimulationError, InvariantViolationError) as error:
        cause = error.__cause__ or error
        invariant = getattr(cause, "invariant", type(cause).__name__)
        if run.lost_loads.excuse(invariant):
            return run.summary()
        events = "\n".join(run.cluster.trace.recent[-SHOWN_EVENTS:])
        text = f"{cause}, at {run.cluster.now_ms} ms of virtual time; last events:\n{events}"
        raise RunFailedError(schedule, invariant, text) from cause
    else:
        return run.summary()
    finally:
        _close_unstarted(run.cluster.loop)


def _close_unstarted(loop: asyncio.AbstractEventLoop) -> None:
    """Close coroutines that have not started when a run ends; Python would warn that they were never awaited."""
    for task in asyncio.all_tasks(loop):
        coroutine = task.get_coro()
        if isinstance(coroutine, CoroutineType) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()


class _Run:
    def __init__(self, schedule: Schedule) -> None:
        self.cluster = VirtualCluster(
            schedule.brokers,
            seed=schedule.seed,
            configs=CONFIGS | (FLUSH_CONFIGS if schedule.disk == FLUSHED else {}),
            max_latency_ms=schedule.latency_ms,
            disk=None if schedule.disk == MEMORY else DiskOptions(sync_ms=(0, schedule.sync_ms)),
        )
        self._schedule = schedule
        self._disturbances = Disturbances(self.cluster, partial(check_recovered, self.cluster, schedule))
        self._shared = SharedState(self.cluster, schedule, self._disturbances)
        self.lost_loads = LostLoads()
        self._reader = CommittedReader(self._shared)
        self._transactional: list[TransactionalProducer] = []
        self._streams_members: list[StreamsMember] = []
        self._letter_queues: set[DeadLetterQueue | NoOpDeadLetterQueue] = set()
        """The dead-letter queues of all processes of brokers; empty without a share group."""

    def run(self) -> None:
        """Run to the end. Raises SimulationError and InvariantViolationError."""
        cluster, schedule, shared = self.cluster, self._schedule, self._shared
        self._create_topic()
        for disk in cluster.disks.values():
            # Not earlier: a directory that was never flushed would not exist after a power failure.
            disk.sync_all()
            disk.fsync_lies = schedule.disk == LYING
        watch = Watch(cluster, schedule, self._disturbances, shared.high_watermarks)
        self._check_images_after_steps(watch)
        watch.start()
        self._start_clients()
        self._disturbances.schedule(schedule.actions)
        cluster.advance(schedule.duration_ms)
        self._until("recovers", lambda: self._disturbances.quiet_since_ms is not None, LONGEST_ACTION_MS)
        self._until("recovers", self._is_in_order, RECOVERY_LIMIT_MS)
        cluster.advance(CALM_MS)
        if self._streams_members:
            self._settle_streams_group()
        shared.running = False
        self._until("requests-are-answered", lambda: not shared.waiting, ANSWER_LIMIT_MS)
        if self._transactional:
            self._end_transactions()
        if schedule.share_members:
            self._check_letters()
        self._until("replicas-agree", lambda: replicas_are_equal(cluster, schedule), RECOVERY_LIMIT_MS)
        check_end(cluster, schedule, shared.history)
        check_group(cluster, GROUP, shared.classic_history)
        check_group(cluster, CONSUMER_GROUP, shared.consumer_history)
        check_group(cluster, STREAMS_GROUP, shared.streams_history)

    def summary(self) -> RunSummary:
        """Return the counts so far."""
        shared = self._shared
        return RunSummary(
            seed=self._schedule.seed,
            digest=self.cluster.trace.digest(),
            acknowledged=shared.history.batches,
            actions=self._disturbances.done,
            generations=shared.classic_history.epoch,
            epochs=shared.consumer_history.epoch,
            streams_epochs=shared.streams_history.epoch,
            commits=sum(
                history.commits for history in (shared.classic_history, shared.consumer_history, shared.streams_history)
            ),
            transactions_committed=shared.transactions.count(Outcome.COMMITTED),
            transactions_aborted=shared.transactions.count(Outcome.ABORTED),
            transactions_in_doubt=shared.transactions.count(Outcome.IN_DOUBT),
            rejected=len(shared.rejected),
            producers_fenced=shared.transactions.fenced,
            lost=tuple(shared.history.lost),
        )

    def _create_topic(self) -> None:
        schedule = self._schedule
        self.cluster.create_topic(
            TOPIC,
            schedule.partitions,
            schedule.replication_factor,
            {
                "min.insync.replicas": schedule.min_insync_replicas,
                "unclean.leader.election.enable": schedule.unclean_elections,
            },
        )

    def _make_share_group(self) -> None:
        cluster, schedule = self.cluster, self._schedule
        cluster.create_topic(
            DEAD_LETTERS, 2, schedule.replication_factor, {"errors.deadletterqueue.group.enable": True}
        )
        group_configs = {"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": DEAD_LETTERS}
        cluster.set_group_configs(SHARE_GROUP, group_configs)
        for number in range(schedule.share_members):
            ShareMember(self._shared, number).start()

    def _check_letters(self) -> None:
        """Wait until each rejected record has a dead letter, or a broker has given one up and said so."""
        cluster, rejected = self.cluster, self._shared.rejected
        until_ms = cluster.now_ms + LETTERS_LIMIT_MS
        while missing := without_letter(cluster, DEAD_LETTERS, rejected):
            if len(missing) <= sum(queue.given_up.total() for queue in self._letter_queues):
                return
            if cluster.now_ms >= until_ms:
                violated("rejected-records-have-letters", f"{missing} of {len(rejected)} have no dead letter")
                return
            cluster.advance(LETTERS_LOOK_MS)

    def _start_clients(self) -> None:
        schedule, shared = self._schedule, self._shared
        for number, kind in enumerate(schedule.producers):
            Producer(shared, number, kind).start()
        for number in range(schedule.consumers):
            Consumer(shared, f"consumer-{number}").start()
        for number in range(schedule.group_members):
            ClassicMember(shared, number).start()
        for number in range(schedule.consumer_members):
            ConsumerMember(shared, number).start()
        self._streams_members = [StreamsMember(shared, number) for number in range(schedule.streams_members)]
        for member in self._streams_members:
            member.start()
        if schedule.transactional:
            version = schedule.transaction_version
            self.cluster.nodes.controller.update_features(
                [FeatureUpdate(TRANSACTION_VERSION, version, UpgradeType.SAFE_DOWNGRADE)]
            )
            self._reader.start()
            for number, id_number in enumerate(schedule.transactional):
                self._transactional.append(TransactionalProducer(shared, number, id_number))
            for producer in self._transactional:
                producer.start()
        if schedule.share_members:
            self._make_share_group()

    def _settle_streams_group(self) -> None:
        """Wait until the group is stable and its members run each task once; then move it to another broker."""
        self._shared.is_steady = True
        tasks = list(range(self._schedule.partitions))

        def is_stable() -> bool:
            running = sorted(task for member in self._streams_members for task in member.tasks)
            return running == tasks and streams_group_is_stable(self.cluster, STREAMS_GROUP, len(self._streams_members))

        self._until("streams-groups-get-stable", is_stable, STABLE_LIMIT_MS)
        following = NextCoordinator(self.cluster, STREAMS_GROUP)
        self._until("streams-groups-get-stable", following.has_loaded, LOAD_LIMIT_MS)
        following.check()

    def _end_transactions(self) -> None:
        """Wait until every transaction is decided, and all committed records are read.

        Open transactions time out; if clocks have jumped, that may take hours, so the next producer of the id ends
        them.
        """
        cluster, schedule, shared = self.cluster, self._schedule, self._shared
        if any(action.kind == "shift_clock" for action in schedule.actions):
            for producer in self._transactional:
                producer.finish()
                has_begun = partial(getattr, producer, "has_begun")
                self._until("transactions-end", has_begun, END_LIMIT_MS)
        self._until("transactions-end", lambda: transactions_are_decided(cluster, schedule), END_LIMIT_MS)
        self._reader.finish()
        self._until("committed-records-are-read", lambda: self._reader.is_done, ANSWER_LIMIT_MS)
        check_transactions(cluster, schedule, shared.history, shared.transactions)

    def _check_images_after_steps(self, watch: Watch) -> None:
        invariants = self.cluster.inside.invariants
        assert invariants is not None
        is_transactional = bool(self._schedule.transactional)
        has_letters = bool(self._schedule.share_members)

        def check() -> None:
            invariants.check()
            watch.check_image()
            if has_letters:
                queues = (broker.share_partitions.dead_letters for broker in invariants.renewed)
                self._letter_queues.update(queue for queue in queues if queue is not None)
            if is_transactional:
                for broker in invariants.renewed:
                    self.lost_loads.look_at(broker)

        self.cluster.loop.after_step = check

    def _is_in_order(self) -> bool:
        """Whether all brokers are back, also for the controller, and in sync."""
        nodes = self.cluster.nodes
        return len(nodes.brokers) == self._schedule.brokers and nodes.is_ready and nodes.is_in_sync

    def _until(self, invariant: str, condition: Callable[[], bool], limit_ms: int) -> None:
        try:
            self.cluster.run_until(condition, limit_ms)
        except SimulationError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            violated(
                invariant,
                f"{limit_ms} ms after the last fault the cluster is not in order: "
                f"{self.cluster.nodes.controller.image.topics[TOPIC].partitions}",
            )

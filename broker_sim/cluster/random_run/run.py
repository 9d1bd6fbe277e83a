"""Runs a schedule on a cluster in virtual time and checks that everything holds that should.

While it runs: `InvariantChecker` after every step, `Watch` every few milliseconds and at every new
image, and the clients at every answer. At the end every fault is undone; then the cluster has to be
in sync within `RECOVERY_LIMIT_MS`, and `check_end` looks at the logs.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Final

from broker_sim.cluster.random_run.checks.consumer_history import ConsumerHistory
from broker_sim.cluster.random_run.checks.end_checks import (
    check_end,
    check_group,
    replicas_are_equal,
)
from broker_sim.cluster.random_run.checks.group_history import GroupHistory
from broker_sim.cluster.random_run.checks.high_watermarks import HighWatermarks
from broker_sim.cluster.random_run.checks.history import Acknowledged, History
from broker_sim.cluster.random_run.checks.lost_loads import LostLoads
from broker_sim.cluster.random_run.checks.power_checks import check_recovered
from broker_sim.cluster.random_run.checks.transaction_checks import (
    check_transactions,
    transactions_are_decided,
)
from broker_sim.cluster.random_run.checks.transaction_history import Outcome, TransactionHistory
from broker_sim.cluster.random_run.checks.watch import LAG_TIME_MAX_MS, Watch
from broker_sim.cluster.random_run.clients.classic_member import GROUP, ClassicMember
from broker_sim.cluster.random_run.clients.committed_reader import CommittedReader
from broker_sim.cluster.random_run.clients.consumer import Consumer
from broker_sim.cluster.random_run.clients.consumer_member import CONSUMER_GROUP, ConsumerMember
from broker_sim.cluster.random_run.clients.group_member import SESSION_TIMEOUT_MS
from broker_sim.cluster.random_run.clients.producer import Producer
from broker_sim.cluster.random_run.clients.surroundings import Surroundings
from broker_sim.cluster.random_run.clients.transactional_producer import (
    LONGEST_TIMEOUT_MS,
    TransactionalProducer,
)
from broker_sim.cluster.random_run.disturbances import Disturbances
from broker_sim.cluster.random_run.schedule import FLUSHED, LYING, MEMORY, TOPIC, Schedule
from broker_sim.cluster.virtual.invariants import InvariantViolationError, violated
from broker_sim.cluster.virtual.virtual_cluster import SimulationError, VirtualCluster
from broker_sim.controller import FeatureUpdate, UpgradeType
from broker_sim.log import DiskOptions
from broker_sim.transaction.state_manager import TRANSACTION_VERSION_FEATURE

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RunFailedError", "RunSummary", "run_schedule"]

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
    "group.consumer.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.assignment.interval.ms": 100,
    "offsets.topic.num.partitions": 1,
    "offsets.commit.timeout.ms": 1_000,
    "transaction.state.log.num.partitions": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 300,
    "request.timeout.ms": 1_500,
}
"""Short enough that a run of some seconds sees all of it happen."""
FLUSH_CONFIGS: Final = {"log.flush.interval.messages": 1}
RECOVERY_LIMIT_MS: Final = 6_000
CALM_MS: Final = 1_000
"""How long clients go on after the recovery, when every request has to be answered."""
ANSWER_LIMIT_MS: Final = 3_000
END_LIMIT_MS: Final = LONGEST_TIMEOUT_MS + 2_500
"""How long a transaction may be open after all is well: its timeout, and what its end takes."""
SHOWN_EVENTS: Final = 30
LONGEST_ACTION_MS: Final = 60_000


class RunFailedError(SimulationError):
    """A run has failed; `invariant` is the short name of what did not hold."""

    def __init__(self, schedule: Schedule, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.schedule = schedule
        self.invariant = invariant


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The result of a run that passed; `digest` is the hash of its whole trace."""

    seed: int
    digest: str
    events: int
    acknowledged: int
    timed_out: int
    refused: int
    disconnected: int
    abandoned: int
    actions: int
    generations: int
    epochs: int
    commits: int
    transactions_committed: int
    transactions_aborted: int
    transactions_in_doubt: int
    producers_fenced: int
    recovery_ms: int
    virtual_ms: int
    lost: tuple[Acknowledged, ...] = ()
    """What was acknowledged and went with the power, on disks that were not flushed."""


def run_schedule(schedule: Schedule) -> RunSummary:
    """Run it to its end; raises RunFailedError with what did not hold."""
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
    """Close what waits for its first step when a run ends, or Python warns that it was never awaited."""
    for task in asyncio.all_tasks(loop):
        coroutine = task.get_coro()
        if (
            isinstance(coroutine, CoroutineType)
            and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
        ):
            coroutine.close()


class _Run:
    def __init__(self, schedule: Schedule) -> None:
        self.cluster = VirtualCluster(
            schedule.brokers,
            seed=schedule.seed,
            configs=CONFIGS | (FLUSH_CONFIGS if schedule.disk == FLUSHED else {}),
            max_latency_ms=schedule.latency_ms,
            disk=_disk_options(schedule),
        )
        self._schedule = schedule
        self._history = History(
            reads_are_final=not (schedule.unclean_elections or schedule.may_lose_records)
        )
        self._group_history = GroupHistory()
        self._transactions = TransactionHistory()
        self._disturbances = Disturbances(
            self.cluster, partial(check_recovered, self.cluster, schedule)
        )
        self._consumer_history = ConsumerHistory(lambda: self._disturbances.removed_ms)
        self._high_watermarks = HighWatermarks()
        self.lost_loads = LostLoads(self.cluster.nodes)
        self._recovery_ms = 0
        self._around = Surroundings(
            self.cluster,
            schedule,
            self._history,
            self._high_watermarks,
            lambda: self._disturbances.quiet_since_ms,
        )
        self._reader = CommittedReader(self._around, self._transactions)

    def run(self) -> None:
        """Run to the end. Raises SimulationError and InvariantViolationError."""
        cluster, schedule = self.cluster, self._schedule
        self._create_topic()
        for disk in cluster.disks.values():
            # Not before: a directory that nobody has ever flushed is nobody's.
            disk.sync_all()
            disk.fsync_lies = schedule.disk == LYING
        watch = Watch(cluster, schedule, self._disturbances, self._high_watermarks)
        self._check_images_after_steps(watch)
        watch.start()
        for number, kind in enumerate(schedule.producers):
            Producer(self._around, number, kind).start()
        for number in range(schedule.consumers):
            Consumer(self._around, f"consumer-{number}").start()
        for number in range(schedule.group_members):
            ClassicMember(self._around, self._group_history, number).start()
        for number in range(schedule.consumer_members):
            ConsumerMember(self._around, self._consumer_history, number).start()
        transactional = self._start_transactions()
        self._disturbances.schedule(schedule.actions)
        cluster.advance(schedule.duration_ms)
        self._recovery_ms = self._recover()
        cluster.advance(CALM_MS)
        self._around.running = False
        self._until("requests-are-answered", lambda: not self._around.waiting, ANSWER_LIMIT_MS)
        self._end_transactions(transactional)
        self._until(
            "replicas-agree", lambda: replicas_are_equal(cluster, schedule), RECOVERY_LIMIT_MS
        )
        check_end(cluster, schedule, self._history)
        check_group(cluster, GROUP, self._group_history)
        check_group(cluster, CONSUMER_GROUP, self._consumer_history)

    def summary(self) -> RunSummary:
        """Return what has happened up to now."""
        cluster = self.cluster
        return RunSummary(
            seed=self._schedule.seed,
            digest=cluster.trace.digest(),
            events=cluster.trace.event_count,
            actions=self._disturbances.done,
            generations=max(self._group_history.generation, 0),
            epochs=self._consumer_history.epoch,
            commits=self._group_history.commits + self._consumer_history.commits,
            transactions_committed=self._transactions.count(Outcome.COMMITTED),
            transactions_aborted=self._transactions.count(Outcome.ABORTED),
            transactions_in_doubt=self._transactions.count(Outcome.IN_DOUBT),
            producers_fenced=self._transactions.fenced,
            recovery_ms=self._recovery_ms,
            virtual_ms=cluster.now_ms,
            lost=tuple(self._history.lost),
            **self._history.outcomes,
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

    def _start_transactions(self) -> list[TransactionalProducer]:
        ids = self._schedule.transactional
        if not ids:
            return []
        self.cluster.nodes.controller.update_features(
            [
                FeatureUpdate(
                    TRANSACTION_VERSION_FEATURE,
                    self._schedule.transaction_version,
                    UpgradeType.SAFE_DOWNGRADE,
                )
            ]
        )
        self._reader.start()
        producers = [
            TransactionalProducer(self._around, self._transactions, number, id_number)
            for number, id_number in enumerate(ids)
        ]
        for producer in producers:
            producer.start()
        return producers

    def _end_transactions(self, producers: list[TransactionalProducer]) -> None:
        """Wait until every transaction is decided, and everything committed is read.

        What is open times out; if clocks have jumped, that may take hours, and the next producer of
        the id ends it.
        """
        if not producers:
            return
        if any(action.kind == "shift_clock" for action in self._schedule.actions):
            for producer in producers:
                producer.finish()
                self._until("transactions-end", partial(_has_begun, producer), END_LIMIT_MS)
        self._until(
            "transactions-end",
            lambda: transactions_are_decided(self.cluster, self._schedule),
            END_LIMIT_MS,
        )
        self._reader.finish()
        self._until("committed-records-are-read", lambda: self._reader.is_done, ANSWER_LIMIT_MS)
        check_transactions(self.cluster, self._schedule, self._history, self._transactions)

    def _check_images_after_steps(self, watch: Watch) -> None:
        check_step = self.cluster.loop.after_step
        assert check_step is not None

        def check() -> None:
            check_step()
            watch.check_image()
            if self._schedule.transactional:
                self.lost_loads.check()

        self.cluster.loop.after_step = check

    def _recover(self) -> int:
        """Wait until all faults are undone and all brokers are back; return how long that took."""
        cluster = self.cluster
        self._until(
            "recovers", lambda: self._disturbances.quiet_since_ms is not None, LONGEST_ACTION_MS
        )
        healed_ms = cluster.now_ms
        self._until("recovers", self._is_in_order, RECOVERY_LIMIT_MS)
        return cluster.now_ms - healed_ms

    def _is_in_order(self) -> bool:
        """Whether all brokers are back, also in the eyes of the controller, and in sync."""
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


def _disk_options(schedule: Schedule) -> DiskOptions | None:
    if schedule.disk == MEMORY:
        return None
    return DiskOptions(sync_ms=(0, schedule.sync_ms))


def _has_begun(producer: TransactionalProducer) -> bool:
    return producer.has_begun

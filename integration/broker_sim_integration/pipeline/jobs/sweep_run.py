"""One simulated run of a sweep: the results of acks=all under given settings, in virtual time.

It does not depend on Spark. Everything follows from the settings, including `seed`: the same settings give the
same outcome, digest for digest, on every machine and in every process.
"""

from __future__ import annotations

import math
import random
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.protocol.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.cluster.virtual.virtual_client import PendingResponse, VirtualClient

BROKERS: Final = 3
TOPIC: Final = "sweep"
LEADER: Final = 1
FIRST_CLIENT_ID: Final = 1_000
DRAIN_MS: Final = 10_000
MINUTE_MS: Final = 60_000

DELAYS: Final[dict[str, Callable[[random.Random, float], float]]] = {
    "constant": lambda _, mean: mean,
    "uniform": lambda rng, mean: rng.uniform(0, 2 * mean),
    "exponential": lambda rng, mean: rng.expovariate(1 / mean) if mean else 0,
    "lognormal": lambda rng, mean: rng.lognormvariate(math.log(mean) - 0.5, 1) if mean else 0,
}
"""Distributions, by name, of the delay of a message between leader and follower, given its mean."""


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """The settings of a cluster and its load; the defaults are a healthy cluster of three under light load."""

    seed: int = 0
    replica_lag_time_max_ms: int = 30_000
    request_timeout_ms: int = 30_000
    min_insync_replicas: int = 2
    follower_delay: str = "exponential"
    follower_delay_ms: float = 1.0
    """Mean one-way delay between leader and follower in ms."""
    requests_per_s: float = 20.0
    failures_per_minute: float = 0.0
    """Rate at which a follower is paused, as a Poisson process."""
    outage_ms: int = 10_000
    """Duration of a follower's pause in ms."""
    duration_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    """Number of requests by outcome; the four counts after `requests` add up to it."""

    requests: int
    acknowledged: int
    timed_out: int
    refused: int
    failed: int
    waited_p50_ms: float | None
    """Median wait of the acknowledged requests in ms; None if there are none."""
    waited_p99_ms: float | None
    waited_max_ms: int | None
    outages: int
    isr_changes: int
    virtual_ms: int
    digest: str


class _Run:
    def __init__(self, settings: SweepSettings) -> None:
        self.settings = settings
        self.load_rng = random.Random(f"load {settings.seed}")
        self.fault_rng = random.Random(f"faults {settings.seed}")
        self.delay_rng = random.Random(f"delays {settings.seed}")
        self.draw_delay = DELAYS[settings.follower_delay]
        self.cluster = VirtualCluster(
            BROKERS,
            seed=settings.seed,
            configs={"replica.lag.time.max.ms": str(settings.replica_lag_time_max_ms)},
            latency_ms=self.latency_ms,
            check_invariants=False,
        )
        self.running = True
        self.codes: dict[int | None, int] = {}
        self.waited_ms: list[int] = []
        self.sent = 0
        self.idle_clients: list[VirtualClient] = []
        self.paused: set[int] = set()
        self.outages = 0

    def latency_ms(self, source: int, target: int) -> int:
        between_brokers = 0 < source < FIRST_CLIENT_ID and 0 < target < FIRST_CLIENT_ID
        if not between_brokers:
            return 0
        return round(self.draw_delay(self.delay_rng, self.settings.follower_delay_ms))

    def outcome(self) -> SweepOutcome:
        settings, cluster = self.settings, self.cluster
        minimum = {"min.insync.replicas": str(settings.min_insync_replicas)}
        order = [LEADER, *(i for i in range(1, BROKERS + 1) if i != LEADER)]
        cluster.create_topic(TOPIC, configs=minimum, assignments={0: order})
        partition_epoch = self.partition_epoch()
        self.schedule_request()
        if settings.failures_per_minute:
            self.schedule_outage()
        cluster.advance(settings.duration_ms)
        self.running = False
        cluster.run_until(
            lambda: sum(self.codes.values()) == self.sent, timeout_ms=settings.request_timeout_ms + DRAIN_MS
        )
        waited = sorted(self.waited_ms)
        timed_out = self.codes.get(ErrorCode.REQUEST_TIMED_OUT, 0)
        refused = sum(
            self.codes.get(code, 0)
            for code in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        )
        return SweepOutcome(
            requests=self.sent,
            acknowledged=len(waited),
            timed_out=timed_out,
            refused=refused,
            failed=self.sent - len(waited) - timed_out - refused,
            waited_p50_ms=_percentile(waited, 0.5),
            waited_p99_ms=_percentile(waited, 0.99),
            waited_max_ms=waited[-1] if waited else None,
            outages=self.outages,
            isr_changes=self.partition_epoch() - partition_epoch,
            virtual_ms=cluster.now_ms,
            digest=cluster.trace.digest(),
        )

    def partition_epoch(self) -> int:
        """Return the partition epoch, which rises by one with each change of the ISR."""
        image = self.cluster.nodes.controller.image
        return image.topics[TOPIC].partitions[0].partition_epoch

    def schedule_request(self) -> None:
        gap_ms = self.load_rng.expovariate(self.settings.requests_per_s / 1_000)
        self.cluster.scheduler.call_later(round(gap_ms), self.send)

    def send(self) -> None:
        """Send one request on an idle connection, so that none waits for the response of another."""
        if not self.running:
            return
        self.sent += 1
        client = self.idle_clients.pop() if self.idle_clients else self.cluster.client()
        request = produce_request(
            (TOPIC, 0), batch=build_batch([b"record %d" % self.sent]), timeout_ms=self.settings.request_timeout_ms
        )
        client.send(LEADER, request, PRODUCE_VERSION, partial(self.done, client))
        self.schedule_request()

    def done(self, client: VirtualClient, pending: PendingResponse) -> None:
        self.idle_clients.append(client)
        code = None
        if not pending.disconnected:
            code = pending.response.responses[0].partition_responses[0].error_code
        self.codes[code] = self.codes.get(code, 0) + 1
        if code == ErrorCode.NONE:
            self.waited_ms.append(pending.elapsed_ms)

    def schedule_outage(self) -> None:
        gap_ms = self.fault_rng.expovariate(self.settings.failures_per_minute / MINUTE_MS)
        self.cluster.scheduler.call_later(round(gap_ms), self.pause_one)

    def pause_one(self) -> None:
        if not self.running:
            return
        self.schedule_outage()
        victim = self.fault_rng.choice([i for i in range(1, BROKERS + 1) if i != LEADER])
        if victim in self.paused:
            return
        self.outages += 1
        self.paused.add(victim)
        self.cluster.pause(victim)
        self.cluster.scheduler.call_later(self.settings.outage_ms, self.resume, victim)

    def resume(self, victim: int) -> None:
        self.paused.remove(victim)
        self.cluster.resume(victim)


def simulate(settings: SweepSettings) -> SweepOutcome:
    """Run to the end and return the outcome; raise ValueError for invalid settings."""
    if settings.follower_delay not in DELAYS:
        raise ValueError(f"follower_delay {settings.follower_delay}: choose one of {', '.join(DELAYS)}")
    if settings.requests_per_s <= 0 or settings.duration_ms <= 0:
        raise ValueError("requests_per_s and duration_ms must be above 0")
    return _Run(settings).outcome()


def simulate_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of settings, extended by its outcome."""
    return row | asdict(simulate(SweepSettings(**row)))


def _percentile(ordered: list[int], share: float) -> float | None:
    if not ordered:
        return None
    return float(ordered[max(0, math.ceil(share * len(ordered)) - 1)])

"""A run with random faults: producers write while brokers are paused, killed, cut off and slowed.

At most one broker has a fault at a time, every topic has `min.insync.replicas` 2 of 3 replicas,
and producers ask for acks=all: so nothing that was acknowledged may be lost. At the end all faults
are undone, and the logs of the replicas must agree and hold every acknowledged record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_sim.cluster.requests import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    fetch_request,
    produce_request,
)
from broker_sim.cluster.virtual_cluster import SimulationError, VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch, iter_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.cluster.virtual_client import PendingResponse

__all__ = ["RandomRun", "RunSummary"]

TOPIC = "topic"
BROKERS = 3
CONFIGS = {
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "300",
    "broker.session.timeout.ms": "6000",
    "replica.socket.timeout.ms": "5000",
}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The result of a run; `digest` is the hash of its whole trace."""

    seed: int
    digest: str
    events: int
    acknowledged: int
    timed_out: int
    refused: int
    disconnected: int
    faults: int
    virtual_ms: int


class RandomRun:
    """One run; all of its random choices come from `seed`."""

    def __init__(self, seed: int, *, duration_ms: int = 60_000, producers: int = 3) -> None:
        self.cluster = VirtualCluster(
            BROKERS, seed=seed, configs=CONFIGS, max_latency_ms=seed % 4 * 5
        )
        self._rng = self.cluster.random
        self._duration_ms = duration_ms
        self._producers = producers
        self._partitions = self._rng.randint(1, 3)
        self._acknowledged: list[tuple[int, int, bytes]] = []
        self._outcomes = {"timed_out": 0, "refused": 0, "disconnected": 0}
        self._faults = 0
        self._running = True
        self._sent = 0

    def run(self) -> RunSummary:
        """Run to the end; raises `SimulationError`, which names the seed, if anything is wrong."""
        cluster = self.cluster
        cluster.create_topic(TOPIC, self._partitions, BROKERS, {"min.insync.replicas": "2"})
        for _ in range(self._producers):
            self._producer_loop()
        for _ in range(2):
            self._consumer_loop()
        self._fault_loop()
        cluster.advance(self._duration_ms)
        self._running = False
        self._heal()
        cluster.run_until(self._is_in_sync)
        self._verify()
        return RunSummary(
            seed=cluster.seed,
            digest=cluster.trace.digest(),
            events=cluster.trace.event_count,
            acknowledged=len(self._acknowledged),
            faults=self._faults,
            virtual_ms=cluster.now_ms,
            **self._outcomes,
        )

    def _later(self, delay_ms: int, callback: Callable[..., object], *args: object) -> None:
        self.cluster.scheduler.call_later(delay_ms, callback, *args)

    # -- load -----------------------------------------------------------------------------------

    def _producer_loop(self) -> None:
        client = self.cluster.client()

        def send() -> None:
            if not self._running:
                return
            number = self._rng.randrange(self._partitions)
            self._sent += 1
            value = b"record %d" % self._sent
            request = produce_request(
                (TOPIC, number),
                batch=build_batch([value]),
                timeout_ms=self._rng.choice([100, 1_000, 10_000]),
            )
            client.send(
                self._leader(number),
                request,
                PRODUCE_VERSION,
                lambda pending: done(number, value, pending),
            )

        def done(number: int, value: bytes, pending: PendingResponse) -> None:
            self._count(number, value, pending)
            self._later(self._rng.randint(0, 200), send)

        send()

    def _count(self, number: int, value: bytes, pending: PendingResponse) -> None:
        if pending.disconnected:
            self._outcomes["disconnected"] += 1
            return
        answer = pending.response.responses[0].partition_responses[0]
        self.cluster.trace.record("produced", number, answer.error_code, answer.base_offset)
        if answer.error_code == ErrorCode.NONE:
            self._acknowledged.append((number, answer.base_offset, value))
        elif answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
            self._outcomes["timed_out"] += 1
        else:
            self._outcomes["refused"] += 1

    def _consumer_loop(self) -> None:
        client = self.cluster.client()
        offsets = dict.fromkeys(range(self._partitions), 0)

        def poll() -> None:
            if self._running:
                number = self._rng.randrange(self._partitions)
                request = fetch_request(
                    (TOPIC, number), offset=offsets[number], max_wait_ms=self._rng.choice([0, 500])
                )
                client.send(
                    self._leader(number),
                    request,
                    FETCH_VERSION,
                    lambda pending: consumed(number, pending),
                )

        def consumed(number: int, pending: PendingResponse) -> None:
            if not pending.disconnected:
                answer = pending.response.responses[0].partitions[0]
                self.cluster.trace.record(
                    "fetched", number, answer.error_code, answer.high_watermark
                )
                if answer.error_code == ErrorCode.NONE and answer.records:
                    offsets[number] = max(offsets[number], answer.high_watermark)
                elif answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    offsets[number] = 0
            self._later(self._rng.randint(1, 300), poll)

        poll()

    def _leader(self, number: int) -> int:
        state = self.cluster.nodes.controller.image.topics[TOPIC].partitions[number]
        return state.leader if state.has_leader else self._rng.randint(1, BROKERS)

    # -- faults ---------------------------------------------------------------------------------

    def _fault_loop(self) -> None:
        def begin_fault() -> None:
            if not self._running:
                return
            broker_id = self._rng.randint(1, BROKERS)
            begin, end = self._rng.choice(self._kinds_of_fault())
            begin(broker_id)
            self._faults += 1
            self._later(self._rng.choice([50, 1_000, 4_000, 12_000]), end_fault, end, broker_id)

        def end_fault(end: Callable[[int], None], broker_id: int) -> None:
            end(broker_id)
            self._later(100, await_sync)

        def await_sync() -> None:
            # The next fault may begin only when the last broker is back in every ISR.
            if self._is_in_sync():
                self._later(self._rng.randint(0, 2_000), begin_fault)
            elif self._running:
                self._later(100, await_sync)

        self._later(self._rng.randint(0, 3_000), begin_fault)

    def _kinds_of_fault(self) -> list[tuple[Callable[[int], None], Callable[[int], None]]]:
        cluster = self.cluster
        return [
            (cluster.pause, cluster.resume),
            (cluster.kill, self._start),
            (cluster.disconnect, cluster.reconnect),
            (lambda b: self._slow(b, 400), lambda b: self._slow(b, 0)),
        ]

    def _start(self, broker_id: int) -> None:
        self.cluster.loop.create_task(self.cluster.inside.start(broker_id, wait=False))

    def _slow(self, broker_id: int, delay_ms: int) -> None:
        for other in range(1, BROKERS + 1):
            if other != broker_id:
                self.cluster.set_link(broker_id, other, delay_ms=delay_ms)
                self.cluster.set_link(other, broker_id, delay_ms=delay_ms)

    def _heal(self) -> None:
        """Wait until the last fault has ended, which is scheduled already."""
        self.cluster.advance(13_000)

    # -- checks ---------------------------------------------------------------------------------

    def _is_in_sync(self) -> bool:
        nodes = self.cluster.nodes
        return len(nodes.brokers) == BROKERS and nodes.is_in_sync

    def _verify(self) -> None:
        self.cluster.run_until(self._is_replicated)
        contents = [self._contents(number) for number in range(self._partitions)]
        for number, offset, value in self._acknowledged:
            if contents[number].get(offset) != value:
                raise SimulationError(
                    f"seed {self.cluster.seed}: {value!r} was acknowledged at offset {offset} of "
                    f"partition {number}, where the log has {contents[number].get(offset)!r}"
                )

    def _is_replicated(self) -> bool:
        """Whether all replicas have the same log, down to the bytes."""
        for number in range(self._partitions):
            key = TopicPartition(TOPIC, number)
            copies = []
            for broker in self.cluster.nodes.brokers.values():
                log = broker.replica_manager.partitions[key].log
                data = log.read(0, 1 << 30, min_one_message=True)
                copies.append((log.log_end_offset, b"".join(data.records)))
            if any(copy != copies[0] for copy in copies):
                return False
        return True

    def _contents(self, number: int) -> dict[int, bytes | None]:
        leader = self.cluster.nodes.brokers[self._leader(number)]
        log = leader.replica_manager.partitions[TopicPartition(TOPIC, number)].log
        data = log.read(0, 1 << 30, min_one_message=True)
        return {
            record.offset: record.value for batch in data.records for record in iter_records(batch)
        }

"""A cluster in virtual time: the brokers of `broker_sim.broker`, stepped by one deterministic loop.

    cluster = VirtualCluster(brokers=3, seed=7)
    cluster.create_topic("t", partitions=1, replication_factor=3)
    cluster.pause(2)
    pending = cluster.client().send(1, produce_request, version=9)
    cluster.run_until(lambda: pending.done)

Thirty seconds of waiting pass in the time that their events take. All chance comes from the seed:
the same calls with the same seed give the same trace, digest for digest. After every step the
invariants are checked; a violation raises `SimulationError`, which names the seed.
"""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, Any

from broker_sim.cluster.invariants import InvariantChecker
from broker_sim.cluster.nodes import Nodes
from broker_sim.cluster.status import cluster_status, purgatory_status
from broker_sim.cluster.trace_digest import BothObservers, OperationWatch, SimulationTrace
from broker_sim.cluster.virtual_client import VirtualClient
from broker_sim.cluster.virtual_scheduler import VirtualScheduler
from broker_sim.config import BrokerConfig
from broker_sim.controller import CreatableTopic
from broker_sim.errors import ApiError
from broker_sim.runtime.links import LinkFault
from broker_sim.runtime.process import Process
from purgatory import DelayedOperationPurgatory, SystemTimer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.trace import Trace
    from purgatory import PurgatoryObserver, VirtualClock

__all__ = ["SimulationError", "VirtualCluster"]

FIRST_CLIENT_ID = 1_000
FIRST_PORT = 19_092
MAX_STEPS = 1_000_000


class SimulationError(AssertionError):
    """A simulated run failed; the text names the seed that repeats it, and the last events."""


class VirtualCluster:
    """Brokers 1 to ``brokers`` in virtual time; single-threaded.

    ``max_latency_ms`` > 0 gives every message between nodes a random delay up to it;
    ``latency_ms(source, target)`` says it message by message instead. ``trace_to`` gets the life of
    every delayed operation; it has to be made with the same ``clock``, and closed by its owner.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        seed: int = 0,
        configs: Mapping[str, str] | None = None,
        max_latency_ms: int = 0,
        latency_ms: Callable[[int, int], int] | None = None,
        check_invariants: bool = True,
        clock: VirtualClock | None = None,
        trace_to: Trace | None = None,
    ) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.scheduler = VirtualScheduler(clock)
        self.trace = SimulationTrace(self.scheduler.clock)
        self._trace_to = trace_to
        self._max_latency_ms = max_latency_ms
        self._client_ids = count(FIRST_CLIENT_ID)
        self._clients: list[VirtualClient] = []
        config = BrokerConfig.from_mapping(configs or {})
        ids = range(1, brokers + 1)
        self.nodes = Nodes(
            self.scheduler,
            dict.fromkeys(ids, config),
            {broker_id: ("127.0.0.1", FIRST_PORT + broker_id) for broker_id in ids},
            cluster_id=f"virtual-{seed}",
            rng=self.random,
            make_purgatory=self._make_purgatory,
            latency_ms=self._random_latency_ms if max_latency_ms else latency_ms,
        )
        self._invariants = InvariantChecker(self.nodes)
        self._check_invariants = check_invariants
        for broker_id in ids:
            self.nodes.start(broker_id)
        self.run_until(lambda: self.nodes.is_ready)

    def _random_latency_ms(self, source: int, target: int) -> int:  # noqa: ARG002 - all links are alike
        return self.random.randint(0, self._max_latency_ms)

    def _make_purgatory(
        self, name: str, broker_id: int, process: Process, purge_interval: int
    ) -> DelayedOperationPurgatory[Any]:
        timer = SystemTimer(name, self.scheduler.clock, process)
        observer: PurgatoryObserver = OperationWatch(name, broker_id, self.trace, self._ended_twice)
        tracer = None
        if self._trace_to is not None:
            tracer = self._trace_to.observer(name, broker_id, self.scheduler.clock)
        if tracer is not None:
            observer = BothObservers(observer, tracer)
        purgatory: DelayedOperationPurgatory[Any] = DelayedOperationPurgatory(
            name,
            timer,
            broker_id=broker_id,
            purge_interval=purge_interval,
            reaper_enabled=False,
            observer=observer,
        )
        if tracer is not None:
            tracer.attach(purgatory)
        self.scheduler.add_purgatory(timer, purgatory)
        return purgatory

    def _ended_twice(self, purgatory: str, operation_id: int) -> None:
        self._invariants.operation_ended_twice(purgatory, operation_id)

    # -- time -----------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The virtual time."""
        return self.scheduler.clock.now_ms()

    def step(self) -> bool:
        """Let one thing happen; False if nothing is left to happen."""
        try:
            went_on = self.scheduler.step()
            if self._check_invariants:
                self._invariants.check()
        except AssertionError as error:
            events = "\n".join(self.trace.recent)
            raise SimulationError(f"seed {self.seed}: {error}\nlast events:\n{events}") from error
        return went_on

    def run_until(self, condition: Callable[[], bool], timeout_ms: int = 120_000) -> None:
        """Step until the condition holds; raises `SimulationError` after ``timeout_ms`` virtual ms."""
        deadline_ms = self.now_ms + timeout_ms
        for _ in range(MAX_STEPS):
            if condition():
                return
            due_ms = self.scheduler.next_due_ms()
            if due_ms is None or due_ms > deadline_ms:
                break
            self.step()
        events = "\n".join(self.trace.recent)
        raise SimulationError(
            f"seed {self.seed}: not reached by {self.now_ms} ms of virtual time\n"
            f"last events:\n{events}"
        )

    def advance(self, duration_ms: int) -> None:
        """Let ``duration_ms`` pass with everything that is due in it."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.scheduler.next_due_ms()) is not None and due_ms <= end_ms:
            self.step()
        self.scheduler.advance_to(end_ms)

    # -- faults ---------------------------------------------------------------------------------

    def pause(self, broker_id: int) -> None:
        """Stop the broker's process where it is (SIGSTOP)."""
        self.trace.record("pause", broker_id)
        self.nodes.pause(broker_id)

    def resume(self, broker_id: int) -> None:
        """Let a paused broker continue (SIGCONT)."""
        self.trace.record("resume", broker_id)
        self.nodes.resume(broker_id)

    def kill(self, broker_id: int) -> None:
        """End the broker's process without a word (SIGKILL); its logs stay."""
        self.trace.record("kill", broker_id)
        broker = self.nodes.brokers.get(broker_id)
        self.nodes.kill(broker_id)
        for purgatory in () if broker is None else broker.purgatories:
            self.scheduler.remove_purgatory(purgatory)
        for client in self._clients:
            client.on_broker_death(broker_id)

    def start(self, broker_id: int) -> None:
        """Start a killed broker again."""
        self.trace.record("start", broker_id)
        self.nodes.start(broker_id)

    def set_link(self, source: int, target: int, *, drop: bool = False, delay_ms: int = 0) -> None:
        """Cut or slow the link from one node to another; without arguments mend it."""
        self.trace.record("link", source, target, drop, delay_ms)
        self.nodes.links.set_fault(source, target, LinkFault(drop, delay_ms))

    def disconnect(self, broker_id: int) -> None:
        """Cut the broker off from the other nodes; clients still reach it."""
        self.trace.record("disconnect", broker_id)
        self.nodes.isolate(broker_id)

    def reconnect(self, broker_id: int) -> None:
        """Undo `disconnect`."""
        self.trace.record("reconnect", broker_id)
        self.nodes.isolate(broker_id, drop=False)

    # -- clients and views ------------------------------------------------------------------------

    def client(self) -> VirtualClient:
        """Return a new client."""
        node_id = next(self._client_ids)
        process = Process(f"client-{node_id}", self.scheduler)
        self.nodes.links.attach(node_id, process)
        client = VirtualClient(node_id, process, self.nodes)
        self._clients.append(client)
        return client

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 3,
        configs: Mapping[str, str] | None = None,
        assignments: Mapping[int, list[int]] | None = None,
    ) -> None:
        """Create a topic and wait until its replicas have heard of it and fetch."""
        wanted = CreatableTopic(
            name,
            -1 if assignments else partitions,
            -1 if assignments else replication_factor,
            tuple((assignments or {}).items()),
            dict(configs or {}),
        )
        (result,) = self.nodes.controller.create_topics([wanted], validate_only=False)
        if not result.outcome.ok:
            raise ApiError(result.outcome.error_code, result.outcome.error_message or "")
        version = self.nodes.controller.image.version
        self.run_until(lambda: all(b.image.version >= version for b in self.nodes.brokers.values()))

    def status(self) -> dict[str, Any]:
        """Return brokers with their state, and partitions with leader, ISR, LEO and HW."""
        return cluster_status(self.nodes)

    def purgatory(self) -> dict[str, Any]:
        """Return what is parked where."""
        return purgatory_status(self.nodes)

"""What can happen to the workers of a test in virtual time; each method returns what ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.chaos.faults.action import BROKERS
from broker_sim.errors import WrongStateError
from broker_sim.runtime.virtual.network import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.chaos.faults.cluster_faults import ClusterFaults
    from broker_sim.chaos.worker import Worker
    from broker_sim.runtime.virtual.network import Network

    Undo = Callable[[], object]


class WorkerFaults:
    """The faults of the workers of one run, named by their kinds."""

    def __init__(self, workers: Sequence[Worker], network: Network, cluster_faults: ClusterFaults) -> None:
        self._workers = workers
        self._network = network
        self._cluster_faults = cluster_faults

    def _worker(self, number: int) -> Worker:
        if not 0 < number <= len(self._workers):
            raise WrongStateError(f"the test has started {len(self._workers)} workers")
        return self._workers[number - 1]

    def crash(self, number: int) -> Undo:
        """Kill a worker, and start it again."""
        return self._worker(number).crash()

    def freeze(self, number: int) -> Undo:
        """Let a worker stand still."""
        return self._worker(number).freeze()

    def fail(self, number: int) -> Undo:
        """Let what a worker depends on fail."""
        return self._worker(number).fail()

    def slow_start(self, number: int, seconds: str) -> Undo:
        """Kill a worker; until the fault is over each of its starts takes so long."""
        return self._worker(number).slow_start(float(seconds))

    def clock(self, number: int, seconds: str) -> Undo:
        """Let the wall clock of a worker's host be off."""
        return self._worker(number).shift_clock(float(seconds))

    def cut(self, number: int, far_end: str, direction: str) -> Undo:
        """Cut a worker off from a broker or from all, both ways or one way."""
        worker, far = self._worker(number), ANY
        if far_end != BROKERS:
            far = self._cluster_faults.address(int(far_end.partition("-")[2]))
        ways = {"to": [(worker.name, far)], "from": [(far, worker.name)]}
        both = ways["to"] + ways["from"]
        return self._cluster_faults.combined.cut_clients(*ways.get(direction, both))

    def slow(self, number: int, latency_ms: str) -> Undo:
        """Let messages to and from a worker take longer."""
        name = self._worker(number).name
        ways = [(name, ANY), (ANY, name)]
        for source, target in ways:
            self._network.set_latency(source, target, float(latency_ms))

        def undo() -> None:
            for source, target in ways:
                self._network.set_latency(source, target, None)

        return undo

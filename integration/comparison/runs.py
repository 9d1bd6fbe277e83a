"""Running a scenario on one side: on a real Kafka, on a recording of one, or on the simulator."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

from broker_sim import Cluster
from integration.clients.stopwatch import now_ms
from integration.cluster_under_test.cluster_under_test import ClusterUnderTest
from integration.cluster_under_test.running_cluster import (
    BROKERS,
    kafka_cluster,
    simulated_cluster,
)
from integration.reference.clusters.node_config import COMMON_CONFIGS
from integration.reference.selection import ReferenceKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from integration.clients.topics import Topic
    from integration.cluster_under_test.running_cluster import RunningCluster
    from integration.observations import Observation
    from integration.reference.progress import Progress
    from integration.reference.selection import Selection
    from integration.scenarios.scenario import Scenario

__all__ = ["ClusterRunner", "KafkaSide", "Run", "Runner", "Side", "SimulatorSide"]

SWITCH_INTERVAL_S = 0.0005
"""The brokers share the interpreter with both sides' clients and must not wait 5 ms for it."""

Configs = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Run:
    """One run of one scenario on one side."""

    observations: list[Observation] = field(default_factory=list)
    trouble: str | None = None
    """Why the scenario did not come to its end."""
    skipped: str | None = None
    """Why it was not run at all."""
    duration_ms: float = 0.0


class Runner(Protocol):
    """Runs scenarios on one cluster of a side."""

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Run a scenario; never raises what goes wrong in it."""


class Side(Protocol):
    """A real Kafka, a recording, or the simulator."""

    name: str

    def open(self, configs: Configs) -> AbstractContextManager[Runner]:
        """Start a cluster with these broker configurations and stop it at the end."""


class ClusterRunner:
    """Runs scenarios on a running cluster; a context manager.

    On a cluster of somebody else it deletes its topics at the end.
    """

    def __init__(self, running: RunningCluster) -> None:
        self._running = running
        self._topics: list[Topic] = []
        self._warm_topic: Topic | None = None
        self._warm_ups = 0

    def __enter__(self) -> Self:
        self._warm_up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._running.is_ours:
            with ClusterUnderTest(self._running, "clean-up") as cluster:
                for topic in self._topics:
                    cluster.topics.delete(topic)

    def _warm_up(self) -> Topic:
        """Return a topic with one partition led by each broker, a new one after every fault."""
        if self._warm_topic is None:
            self._warm_ups += 1
            with ClusterUnderTest(self._running, f"warm-up.{self._warm_ups}") as cluster:
                self._warm_topic = cluster.topics.warm_up()
                self._topics.extend(cluster.topics.created)
        return self._warm_topic

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Run a scenario; afterwards its faults are undone and the cluster is healthy."""
        missing = scenario.needs - self._running.faults
        if missing:
            return Run(skipped=f"needs {', '.join(sorted(missing))}")
        run = Run()
        started_ms = now_ms()
        try:
            prefix = f"{scenario.name[:60]}.{repeat}"
            warm_topic = self._warm_up()
            with ClusterUnderTest(self._running, prefix, warm_topic=warm_topic) as cluster:
                try:
                    run.observations.extend(scenario.function(cluster))
                finally:
                    self._topics.extend(cluster.topics.created)
                    if cluster.faults.any_so_far:
                        self._warm_topic = None
        except Exception as error:  # noqa: BLE001 - any error is reported as trouble
            run.trouble = f"{type(error).__name__}: {error}"
        run.duration_ms = now_ms() - started_ms
        return run


class SkippingRunner:
    """Runs nothing, for a reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Return the reason."""
        del scenario, repeat
        return Run(skipped=self._reason)


class KafkaSide:
    """Real clusters of the chosen reference; `facts` are those of the first that ran.

    Brokers that somebody else runs cannot be configured: what needs that is skipped.
    """

    name = "kafka"

    def __init__(self, selection: Selection, progress: Progress) -> None:
        self._selection = selection
        self._progress = progress
        self.facts: dict[str, object] = {}

    @contextmanager
    def open(self, configs: Configs) -> Iterator[Runner]:
        """Start three nodes."""
        if configs and self._selection.kind is ReferenceKind.BOOTSTRAP:
            yield SkippingRunner(f"needs brokers with {', '.join(key for key, _ in configs)}")
            return
        with self._selection.cluster(dict(configs), progress=self._progress) as cluster:
            self.facts = self.facts or cluster.describe()
            with ClusterRunner(kafka_cluster(cluster)) as runner:
                yield runner


class SimulatorSide:
    """Simulated clusters in this process."""

    name = "sim"

    @contextmanager
    def open(self, configs: Configs) -> Iterator[Runner]:
        """Start three simulated brokers."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        with (
            Cluster(BROKERS, configs=COMMON_CONFIGS | dict(configs)) as cluster,
            ClusterRunner(simulated_cluster(cluster)) as runner,
        ):
            yield runner

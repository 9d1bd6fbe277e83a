"""Running a scenario on one side: on a real Kafka, on a recording of one, or on the simulator."""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, Self

from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
from broker_sim_integration.cluster_under_test.running_cluster import BROKERS, kafka_cluster, simulated_cluster
from broker_sim_integration.comparison.starvation import Starvation, waited_for_processor_ms
from broker_sim_integration.reference.clusters.node_config import COMMON_CONFIGS
from broker_sim_integration.reference.selection import ReferenceKind
from broker_sim_integration.scenarios.helpers.normalise import as_first_repeat
from broker_sim_integration.simulator.command import SimulatorCommand, own_command
from broker_sim_integration.simulator.process import SimulatorProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.running_cluster import RunningCluster
    from broker_sim_integration.comparison.distribution import Distribution
    from broker_sim_integration.comparison.intervals import Interval
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.reference.progress import Progress
    from broker_sim_integration.reference.selection import Selection
    from broker_sim_integration.scenarios.scenario import Scenario

Configs = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Run:
    """One run of one scenario on one side."""

    observations: list[Observation] = field(default_factory=list)
    trouble: str | None = None
    """The reason why the scenario did not complete; None if it did."""
    skipped: str | None = None
    """The reason why it was not run at all; None if it was."""
    duration_ms: float = 0.0
    control: Distribution | None = None
    """Lateness of the control timer, if it was recorded in another run of the comparison."""
    starved: list[Interval] = field(default_factory=list)
    """Intervals in which the side itself was kept from running, as far as known."""


class Runner(Protocol):
    """Runs scenarios on one cluster of a side."""

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Run a scenario; errors in it are part of the result, never raised."""


class Side(Protocol):
    """A real Kafka, a recording, or the simulator."""

    name: str

    def open(self, configs: Configs) -> AbstractContextManager[Runner]:
        """Start a cluster with these broker configurations; it is stopped at the end of the context."""


class ClusterRunner:
    """Runs scenarios on a running cluster; a context manager.

    On a cluster that is not its own it deletes its topics at the end.
    """

    def __init__(self, running: RunningCluster) -> None:
        self._running = running
        self._topics: list[Topic] = []
        self._warm_topic: Topic | None = None

    def __enter__(self) -> Self:
        self._warm_up()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._running.is_ours:
            with ClusterUnderTest(self._running, "clean-up") as cluster:
                for topic in self._topics:
                    cluster.topics.delete(topic)

    def _warm_up(self) -> Topic:
        """Return a topic with one partition led by each broker, a new one after each fault."""
        if self._warm_topic is None:
            # Several runners, also of other processes, may use the same cluster.
            prefix = f"warm-up.{secrets.token_hex(4)}"
            with ClusterUnderTest(self._running, prefix) as cluster:
                self._warm_topic = cluster.topics.warm_up()
                self._topics.extend(cluster.topics.created)
        return self._warm_topic

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Run a scenario; afterwards its faults are undone and the cluster is healthy."""
        missing = scenario.needs - self._running.faults - self._running.readings
        if missing:
            return Run(skipped=f"needs {', '.join(sorted(missing))}")
        run = Run()
        started_ms = now_ms()
        try:
            short = scenario.name[:60]
            prefix = f"{short}.{repeat}"
            warm_topic = self._warm_up()
            with ClusterUnderTest(self._running, prefix, warm_topic=warm_topic) as cluster:
                try:
                    for seen in scenario.function(cluster):
                        fields = as_first_repeat(dict(seen.fields), short, repeat)
                        run.observations.append(replace(seen, fields=fields))
                finally:
                    self._topics.extend(cluster.topics.created)
                    if cluster.faults.any_so_far:
                        self._warm_topic = None
        except Exception as error:  # noqa: BLE001 - any error is reported as trouble
            run.trouble = f"{type(error).__name__}: {error}"
        run.duration_ms = now_ms() - started_ms
        return run


class SkippingRunner:
    """Runs nothing, for a given reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Return a skipped run with the reason."""
        del scenario, repeat
        return Run(skipped=self._reason)


class KafkaSide:
    """Real clusters of the selected reference; `facts` are those of the first one that ran.

    Brokers that are already running cannot be configured: scenarios that need configurations are skipped.
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


class SimulatorRunner:
    """Runs scenarios on a simulator, and reports the end of its process during one.

    It records when the simulator had to wait for a processor.
    """

    def __init__(self, simulator: SimulatorProcess, runner: ClusterRunner) -> None:
        self._simulator = simulator
        self._runner = runner

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Run a scenario; errors in it are part of the result, never raised."""
        with Starvation(waited_for_processor_ms(self._simulator.pid)) as starvation:
            run = self._runner.run(scenario, repeat)
        run.starved = starvation.intervals
        if run.trouble is not None:
            run.trouble = self._simulator.how_it_ended() or run.trouble
        return run


class SimulatorSide:
    """Simulated clusters, each a `broker-sim run` of its own; `facts` are those of the first one.

    `command` is by default the `broker-sim` of this Python.
    """

    name = "sim"

    def __init__(self, command: SimulatorCommand | None = None) -> None:
        self._command = own_command() if command is None else command
        self.facts: dict[str, object] = {}

    @contextmanager
    def open(self, configs: Configs) -> Iterator[Runner]:
        """Start three simulated brokers. Raise `SimulatorError` if they do not start."""
        wanted = COMMON_CONFIGS | dict(configs)
        with (
            SimulatorProcess(self._command.arguments, brokers=BROKERS, configs=wanted) as simulator,
            ExitStack() as stack,
        ):
            self.facts = self.facts or {
                "command": str(self._command),
                "reason": self._command.reason,
                "build": simulator.build,
            }
            with simulator.explain():
                runner = stack.enter_context(ClusterRunner(simulated_cluster(simulator)))
            yield SimulatorRunner(simulator, runner)

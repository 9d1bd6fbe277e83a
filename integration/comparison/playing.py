"""Playing a scenario on a side: a running cluster, or a recording of one."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

from broker_sim.cluster.cluster import Cluster
from integration.clients.stopwatch import now_ms
from integration.reference.node_config import COMMON_CONFIGS
from integration.reference.selection import ReferenceKind
from integration.stage.stage import Stage
from integration.stage.under_test import BROKERS, KafkaUnderTest, SimulatorUnderTest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from integration.clients.topics import Topic
    from integration.observations import Observation
    from integration.reference.progress import Progress
    from integration.reference.selection import Selection
    from integration.scenarios.scenario import Scenario
    from integration.stage.under_test import ClusterUnderTest

__all__ = ["ClusterPlayer", "KafkaSide", "Player", "Playing", "Side", "SimulatorSide"]

SWITCH_INTERVAL_S = 0.0005
"""The brokers share the interpreter with both sides' clients: they must not wait 5 ms for it."""

Configs = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Playing:
    """What one side showed of one scenario, once."""

    observations: list[Observation] = field(default_factory=list)
    trouble: str | None = None
    """Why the scenario did not come to its end."""
    skipped: str | None = None
    """Why it was not played at all."""
    duration_ms: float = 0.0


class Player(Protocol):
    """One cluster of a side, ready to play."""

    def play(self, scenario: Scenario, repeat: int) -> Playing:
        """Play a scenario; never raises what goes wrong in it."""


class Side(Protocol):
    """A real Kafka, a recording, or the simulator."""

    name: str

    def open(self, configs: Configs) -> AbstractContextManager[Player]:
        """Start a cluster with these broker configurations and stop it at the end."""


class ClusterPlayer:
    """Plays on a running cluster; a context manager, which leaves nothing on a cluster not ours."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        self._cluster = cluster
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
        if not self._cluster.is_ours:
            with Stage(self._cluster, "clean-up") as stage:
                for topic in self._topics:
                    stage.delete(topic)

    def _warm_up(self) -> Topic:
        """Return a topic that is led by each broker once, made anew after every fault."""
        if self._warm_topic is None:
            self._warm_ups += 1
            with Stage(self._cluster, f"warm-up.{self._warm_ups}") as stage:
                self._warm_topic = stage.warm_up()
                self._topics.extend(stage.topics)
        return self._warm_topic

    def play(self, scenario: Scenario, repeat: int) -> Playing:
        """Play on a stage of its own; faults are undone and the cluster is healthy afterwards."""
        missing = scenario.needs - self._cluster.faults
        if missing:
            return Playing(skipped=f"needs {', '.join(sorted(missing))}")
        playing = Playing()
        started_ms = now_ms()
        try:
            prefix = f"{scenario.name[:60]}.{repeat}"
            with Stage(self._cluster, prefix, warm_topic=self._warm_up()) as stage:
                try:
                    playing.observations.extend(scenario.play(stage))
                finally:
                    self._topics.extend(stage.topics)
                    if stage.was_hurt:
                        self._warm_topic = None
        except Exception as error:  # noqa: BLE001 - whatever it is belongs into the report
            playing.trouble = f"{type(error).__name__}: {error}"
        playing.duration_ms = now_ms() - started_ms
        return playing


class SkippingPlayer:
    """Plays nothing, for a reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def play(self, scenario: Scenario, repeat: int) -> Playing:
        """Say why."""
        del scenario, repeat
        return Playing(skipped=self._reason)


class KafkaSide:
    """Real clusters of the chosen reference; ``facts`` are those of the first that ran.

    Brokers that somebody else runs cannot be configured: what needs that is skipped.
    """

    name = "kafka"

    def __init__(self, selection: Selection, progress: Progress) -> None:
        self._selection = selection
        self._progress = progress
        self.facts: dict[str, object] = {}

    @contextmanager
    def open(self, configs: Configs) -> Iterator[Player]:
        """Start three nodes."""
        if configs and self._selection.kind is ReferenceKind.BOOTSTRAP:
            yield SkippingPlayer(f"needs brokers with {', '.join(key for key, _ in configs)}")
            return
        with self._selection.cluster(dict(configs), progress=self._progress) as cluster:
            self.facts = self.facts or cluster.describe()
            yield from _played_on(KafkaUnderTest(cluster))


class SimulatorSide:
    """Simulated clusters in this process."""

    name = "sim"

    @contextmanager
    def open(self, configs: Configs) -> Iterator[Player]:
        """Start three simulated brokers."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        with Cluster(BROKERS, configs=COMMON_CONFIGS | dict(configs)) as cluster:
            yield from _played_on(SimulatorUnderTest(cluster))


def _played_on(cluster: ClusterUnderTest) -> Iterator[Player]:
    with ClusterPlayer(cluster) as player:
        yield player

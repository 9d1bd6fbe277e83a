"""Lateness of both sides for a picture: a row per wait and wake-up, with each side's samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_sim_integration.comparison.lateness import singles
from broker_sim_integration.comparison.timeliness import distributed_steps, excused_lateness_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker_sim_integration.comparison.distribution import Distribution, LatenessComparison
    from broker_sim_integration.comparison.runs import Run
    from broker_sim_integration.comparison.verdict import ScenarioResult

FIRST_MS: Final = 0.1
LAST_MS: Final = 1000.0


@dataclass(frozen=True, slots=True)
class LatenessRow:
    """Lateness of the responses of one comparison on each side, in ms."""

    compared: LatenessComparison
    kafka: Sequence[float]
    sim: Sequence[float]

    @property
    def name(self) -> str:
        """The scenario and its step, or the class of timing."""
        return self.compared.name

    def sides(self) -> Iterator[tuple[str, Sequence[float], Distribution]]:
        """Yield the name, samples and percentiles of each side."""
        yield "Kafka", self.kafka, self.compared.kafka
        yield "simulator", self.sim, self.compared.sim


def lateness_rows(results: Iterable[ScenarioResult], lateness: Iterable[LatenessComparison]) -> list[LatenessRow]:
    """Return a row per comparison, with the compared samples."""
    kafka: dict[str, list[float]] = {}
    sim: dict[str, list[float]] = {}
    for result in results:
        counted = result.counted_repeats
        for repeat in counted:
            for samples, runs in ((kafka, result.kafka), (sim, result.sim)):
                for name, late_ms in _samples(result.scenario.name, runs[repeat - 1]):
                    if repeat == counted[-1] or name.startswith("all "):
                        samples.setdefault(name, []).append(late_ms)
    return [LatenessRow(compared, kafka.get(compared.name, ()), sim.get(compared.name, ())) for compared in lateness]


def _samples(scenario: str, run: Run) -> Iterator[tuple[str, float]]:
    distributed = distributed_steps(run.observations)
    for observation in run.observations:
        if observation.step in distributed:
            yield f"{scenario} / {observation.step}", excused_lateness_ms(observation)
    for kind, late_ms in singles(run):
        yield f"all {kind.value}", late_ms


def position(lateness_ms: float) -> float:
    """Return the position from 0 to 1 on a logarithmic axis from `FIRST_MS` to `LAST_MS`."""
    clamped_ms = min(max(lateness_ms, FIRST_MS), LAST_MS)
    return math.log(clamped_ms / FIRST_MS) / math.log(LAST_MS / FIRST_MS)

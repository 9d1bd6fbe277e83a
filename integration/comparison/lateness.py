"""Lateness as distributions: how long after they were due the responses of a side came.

The simulator may be at most `TOLERANCE_MS` later than the real broker at the 99th percentile, on
the same machine in the same run; `TOLERANCE_REASON` says why.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from integration.observations import TimingClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from integration.comparison.runs import Run
    from integration.comparison.verdict import ScenarioResult

__all__ = [
    "TOLERANCE_MS",
    "TOLERANCE_REASON",
    "Distribution",
    "LatenessComparison",
    "compare_lateness",
]

TOLERANCE_MS: Final = 5.0
TOLERANCE_REASON: Final = (
    "two busy cores add a few milliseconds to either side from one run to the next, "
    "and a faulty timer adds more"
)
LEAST_SAMPLES: Final = 50
"""With fewer samples a single outlier would decide the 99th percentile."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Lateness in ms of many responses of one side."""

    count: int
    p50: float
    p95: float
    p99: float
    maximum: float

    @classmethod
    def of(cls, samples: Iterable[float]) -> Distribution:
        """Return the percentiles (nearest rank) of at least one sample."""
        ordered = sorted(samples)

        def percentile(share: float) -> float:
            return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)

        maximum = round(ordered[-1], 3)
        return cls(len(ordered), percentile(0.5), percentile(0.95), percentile(0.99), maximum)


@dataclass(frozen=True, slots=True)
class LatenessComparison:
    """One class of timing, or one step that was repeated often, on both sides."""

    name: str
    timing: TimingClass
    kafka: Distribution
    sim: Distribution
    judged: bool
    """Whether the tolerance applies: enough samples, all of one step."""

    @property
    def agrees(self) -> bool:
        """Whether the simulator is later than the real broker by the tolerance at most."""
        return not self.judged or self.sim.p99 <= self.kafka.p99 + TOLERANCE_MS


def compare_lateness(results: Sequence[ScenarioResult]) -> list[LatenessComparison]:
    """Return a comparison per step with enough samples, then one per class of timing.

    The classes mix many kinds of responses, so they are shown and not judged.
    """
    kafka = _samples(results, [result.kafka for result in results])
    sim = _samples(results, [result.sim for result in results])
    return [
        LatenessComparison(
            name,
            timing,
            Distribution.of(samples),
            Distribution.of(sim[name, timing]),
            judged="/" in name and min(len(samples), len(sim[name, timing])) >= LEAST_SAMPLES,
        )
        for (name, timing), samples in kafka.items()
        if sim.get((name, timing)) and ("/" not in name or len(samples) >= LEAST_SAMPLES)
    ]


def _samples(
    results: Sequence[ScenarioResult], runs: Iterable[Sequence[Run]]
) -> dict[tuple[str, TimingClass], list[float]]:
    steps: dict[tuple[str, TimingClass], list[float]] = defaultdict(list)
    classes: dict[tuple[str, TimingClass], list[float]] = defaultdict(list)
    for result, repeats in zip(results, runs, strict=True):
        for run in repeats:
            for seen in run.observations:
                kind = seen.timing.kind
                if kind is not TimingClass.UNTIMED:
                    steps[f"{result.scenario.name} / {seen.step}", kind].append(seen.lateness_ms)
                    classes[f"all {kind.value}", kind].append(seen.lateness_ms)
    return {**steps, **classes}

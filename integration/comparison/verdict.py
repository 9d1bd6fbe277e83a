"""The verdict: the observations of both sides of a scenario, compared.

Fields must be equal. A time is not compared with that of the other side but with the `Timing` that
the scenario states, because the same broker on the same machine is never equally late twice. How
late the sides are is compared in `integration.comparison.lateness`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from integration.comparison.differences import KnownDifference, reason_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from integration.comparison.runs import Run
    from integration.observations import Observation
    from integration.scenarios.scenario import Scenario

__all__ = ["Difference", "ScenarioResult", "Verdict", "compare_runs"]


class Verdict(StrEnum):
    """The result of one scenario over all its repeats."""

    AGREED = "agreed"
    DOCUMENTED = "documented"
    DIFFERED = "differed"
    FLAKY = "flaky"
    REFERENCE_TROUBLE = "reference trouble"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of an observation that is not equal, or an observation that one side lacks."""

    step: str
    attempt: int
    repeat: int
    field: str
    kafka: Any
    sim: Any
    reason: str | None
    """The reason from docs/differences.md; None makes the comparison fail."""


@dataclass(slots=True)
class ScenarioResult:
    """All repeats of one scenario on both sides, and their differences."""

    scenario: Scenario
    kafka: list[Run] = field(default_factory=list)
    sim: list[Run] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    agreed: int = 0
    documented: int = 0
    differed: int = 0

    def add(self, kafka: Run, sim: Run, known: Sequence[KnownDifference]) -> None:
        """Add one more repeat."""
        self.kafka.append(kafka)
        self.sim.append(sim)
        if kafka.skipped or kafka.trouble:
            return
        repeat = len(self.kafka)
        found = compare_runs(self.scenario.name, repeat, kafka, sim, known)
        self.differences.extend(found)
        if not found:
            self.agreed += 1
        elif all(difference.reason for difference in found):
            self.documented += 1
        else:
            self.differed += 1

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the repeats; flaky when only some of them differ."""
        if any(run.trouble for run in self.kafka):
            return Verdict.REFERENCE_TROUBLE
        if self.differed:
            return Verdict.FLAKY if self.agreed or self.documented else Verdict.DIFFERED
        if self.documented:
            return Verdict.DOCUMENTED
        return Verdict.AGREED if self.agreed else Verdict.SKIPPED

    @property
    def flakiness(self) -> str:
        """How many repeats differ, if it is flaky; else an empty text."""
        if self.verdict is not Verdict.FLAKY:
            return ""
        return f"{self.differed} of {len(self.kafka)} repeats differ"

    @property
    def has_trouble(self) -> bool:
        """Whether a side did not come to the end of a repeat."""
        return any(run.trouble for run in (*self.kafka, *self.sim))

    @property
    def trouble(self) -> str | None:
        """Why a side did not come to the end of it, or why it was not run."""
        for side, runs in (("kafka", self.kafka), ("sim", self.sim)):
            for run in runs:
                if run.trouble or run.skipped:
                    return f"{side}: {run.trouble or run.skipped}"
        return None


def compare_runs(
    scenario: str, repeat: int, kafka: Run, sim: Run, known: Sequence[KnownDifference]
) -> list[Difference]:
    """Return all differences of one repeat, matched by step and attempt."""
    found: list[tuple[str, int, str, Any, Any]] = []
    if sim.trouble or sim.skipped:
        found.append(("", 1, "trouble", None, sim.trouble or sim.skipped))
    theirs = {(seen.step, seen.attempt): seen for seen in kafka.observations}
    ours = {(seen.step, seen.attempt): seen for seen in sim.observations}
    for step, attempt in theirs | ours:
        at_kafka, at_sim = theirs.get((step, attempt)), ours.get((step, attempt))
        if at_kafka is None or at_sim is None:
            if not sim.trouble:
                found.append((step, attempt, "seen", at_kafka is not None, at_sim is not None))
            continue
        found += [(step, attempt, name, *values) for name, *values in _differing(at_kafka, at_sim)]
    return [
        Difference(
            step=step,
            attempt=attempt,
            repeat=repeat,
            field=name,
            kafka=at_kafka,
            sim=at_sim,
            reason=reason_for(known, scenario, step, name),
        )
        for step, attempt, name, at_kafka, at_sim in found
    ]


def _differing(kafka: Observation, sim: Observation) -> list[tuple[str, Any, Any]]:
    theirs, ours = kafka.exact(), sim.exact()
    found = [
        (name, theirs.get(name), ours.get(name))
        for name in theirs | ours
        if theirs.get(name) != ours.get(name)
    ]
    in_time = kafka.timing.holds(kafka.elapsed_ms) and sim.timing.holds(sim.elapsed_ms)
    if not in_time or kafka.timing.kind is not sim.timing.kind:
        found.append(("timing", _when(kafka), _when(sim)))
    return found


def _when(seen: Observation) -> str:
    return f"{seen.elapsed_ms:.1f} ms, {seen.lateness_ms:+.1f} of {seen.timing}"

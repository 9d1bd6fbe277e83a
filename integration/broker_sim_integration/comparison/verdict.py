"""The verdict: a comparison of both sides' observations of a scenario.

Fields must be equal. A single time is not compared with that of the other side but with the `Timing` of the
scenario, because the same broker on the same machine is never equally late twice. Steps with many attempts
are compared as distributions.

Lateness alone may be caused by the machine: such a scenario is repeated, up to `MORE_REPEATS` times, and has
to be in time in most of its repeats. A defect occurs every time. Early responses and other values are never
tolerated. If Kafka is late in most repeats the reference is in trouble: that is no difference, but no agreement
either.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.comparison.differences import KnownDifference, reason_for
from broker_sim_integration.comparison.distribution import LatenessComparison, Machines, compare_samples
from broker_sim_integration.comparison.timeliness import (
    KAFKA_LATE_MS,
    ROUNDING_MS,
    distributed_steps,
    early_ms,
    excused_lateness_ms,
    late_ms,
    limit_ms,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim_integration.comparison.runs import Run
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.scenario import Scenario

MORE_REPEATS: Final = 2
"""Three runs have a majority, and one stall of the machine does not hit two of them."""
LATENESS_FIELDS: Final = frozenset({"late", "lateness"})
UNKNOWN_MACHINES: Final = Machines()


class Verdict(StrEnum):
    """The result of one scenario over all its repeats."""

    AGREED = "agreed"
    DOCUMENTED = "documented"
    DIFFERED = "differed"
    LATE = "late"
    FLAKY = "flaky"
    REFERENCE_TROUBLE = "reference trouble"
    REFERENCE_LATE = "reference late"
    NOT_PLAYED = "not played"


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
    """The reason from docs/reference/differences.md; without one the comparison fails."""

    @property
    def is_lateness(self) -> bool:
        """Whether only the time was too late, of one response or of a distribution."""
        return self.field in LATENESS_FIELDS


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
    late: list[int] = field(default_factory=list)
    """The repeats that differ in nothing but lateness."""
    kafka_late: dict[int, str] = field(default_factory=dict)
    """The repeats that would agree if Kafka itself had been in time, with its first late response."""
    distributions: dict[int, list[LatenessComparison]] = field(default_factory=dict)
    """Comparisons of the steps with many attempts, by repeat."""

    def add(
        self, kafka: Run, sim: Run, known: Sequence[KnownDifference], machines: Machines = UNKNOWN_MACHINES
    ) -> None:
        """Add one more repeat."""
        self.kafka.append(kafka)
        self.sim.append(sim)
        if kafka.skipped or kafka.trouble:
            return
        repeat = len(self.kafka)
        found = compare_runs(self.scenario.name, repeat, kafka, sim, known)
        self.distributions[repeat] = []
        for step, one in _distributions(self.scenario.name, kafka, sim, machines):
            late = _lateness(self.scenario.name, step, repeat, one, known)
            if not one.agrees:
                found.append(late)
            judged = one if late.reason is None else replace(one, judged=False, reason="")
            self.distributions[repeat].append(judged)
        self.differences.extend(found)
        unexplained = [difference for difference in found if difference.reason is None]
        kafka_late = _first_late(kafka)
        if kafka_late and not unexplained:
            self.kafka_late[repeat] = kafka_late
        elif not found:
            self.agreed += 1
        elif not unexplained:
            self.documented += 1
        elif all(difference.is_lateness for difference in unexplained):
            self.late.append(repeat)
        else:
            self.differed += 1

    @property
    def is_late(self) -> bool:
        """Whether at least half of the repeats were late."""
        return 2 * len(self.late) >= max(1, len(self.kafka))

    def wants_another(self, repeats: int) -> bool:
        """Whether one more repeat than `repeats` may show that the machine was the cause.

        Only if nothing but lateness differs, on either side, and the majority is open.
        """
        most = repeats + MORE_REPEATS
        late = len(self.late), len(self.kafka_late)
        in_time = len(self.kafka) - sum(late)
        if not any(late) or self.differed or self.has_trouble:
            return False
        return len(self.kafka) < most and 2 * max(*late, in_time) <= most

    @property
    def counted_repeats(self) -> list[int]:
        """The repeats that count: all, except late ones if most repeats were in time."""
        played = sorted(self.distributions)
        return played if self.is_late else [one for one in played if one not in self.late]

    @property
    def failures(self) -> list[Difference]:
        """The differences that make the scenario fail."""
        counted = set(self.counted_repeats)
        return [found for found in self.differences if found.reason is None and found.repeat in counted]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the repeats; flaky if only some of them differ."""
        if any(run.trouble for run in self.kafka):
            return Verdict.REFERENCE_TROUBLE
        if self.differed:
            return Verdict.FLAKY if self.agreed or self.documented else Verdict.DIFFERED
        if self.is_late:
            return Verdict.LATE
        if 2 * len(self.kafka_late) >= max(1, len(self.kafka)):
            return Verdict.REFERENCE_LATE
        if self.documented:
            return Verdict.DOCUMENTED
        return Verdict.AGREED if self.agreed else Verdict.NOT_PLAYED

    @property
    def flakiness(self) -> str:
        """A text with the number of repeats that differ or were late; empty if all or none did."""
        if self.verdict is Verdict.FLAKY:
            return f"{self.differed} of {len(self.kafka)} repeats differ"
        late = []
        if self.late:
            late.append(f"{len(self.late)} of {len(self.kafka)} repeats late")
        if self.kafka_late:
            late.append(f"Kafka late in {len(self.kafka_late)} of {len(self.kafka)}")
        return "; ".join(late)

    @property
    def has_trouble(self) -> bool:
        """Whether a side did not complete a repeat."""
        return any(run.trouble for run in (*self.kafka, *self.sim))

    @property
    def trouble(self) -> str | None:
        """The reason why a side did not complete a repeat, or None."""
        for side, runs in (("Kafka", self.kafka), ("simulator", self.sim)):
            for run in runs:
                if run.trouble:
                    return f"{side}: {run.trouble}"
        return None

    @property
    def not_played(self) -> str | None:
        """The reason why the reference did not play the scenario, or None."""
        return next((run.skipped for run in self.kafka if run.skipped), None)


def compare_runs(
    scenario: str, repeat: int, kafka: Run, sim: Run, known: Sequence[KnownDifference]
) -> list[Difference]:
    """Return all differences of one repeat, matched by step and attempt."""
    found: list[tuple[str, int, str, Any, Any]] = []
    if sim.trouble or sim.skipped:
        found.append(("", 1, "trouble", None, sim.trouble or sim.skipped))
    theirs = {(seen.step, seen.attempt): seen for seen in kafka.observations}
    ours = {(seen.step, seen.attempt): seen for seen in sim.observations}
    distributed = distributed_steps(kafka.observations) & distributed_steps(sim.observations)
    for step, attempt in theirs | ours:
        at_kafka, at_sim = theirs.get((step, attempt)), ours.get((step, attempt))
        if at_kafka is None or at_sim is None:
            if not sim.trouble:
                found.append((step, attempt, "seen", at_kafka is not None, at_sim is not None))
            continue
        found += [(step, attempt, name, *values) for name, *values in _differing(at_kafka, at_sim)]
        found += [
            (step, attempt, name, _when(at_kafka), _when(at_sim)) for name in _mistimed(at_kafka, at_sim, distributed)
        ]
    return [
        Difference(
            step=step,
            attempt=attempt,
            repeat=repeat,
            field=name,
            kafka=at_kafka,
            sim=at_sim,
            reason=reason_for(known, scenario, step, name, at_sim),
        )
        for step, attempt, name, at_kafka, at_sim in found
    ]


def _differing(kafka: Observation, sim: Observation) -> list[tuple[str, Any, Any]]:
    theirs, ours = kafka.exact(), sim.exact()
    found = [(name, theirs.get(name), ours.get(name)) for name in theirs | ours if theirs.get(name) != ours.get(name)]
    if kafka.timing.kind is not sim.timing.kind:
        found.append(("timing", str(kafka.timing), str(sim.timing)))
    return found


def _mistimed(kafka: Observation, sim: Observation, distributed: frozenset[str]) -> Iterator[str]:
    if early_ms(kafka, ROUNDING_MS) or early_ms(sim):
        yield "early"
    if late_ms(sim, limit_ms(sim, distributed)):
        yield "late"


def _first_late(kafka: Run) -> str | None:
    """Return in one line the first response of Kafka that was too late to count, or None.

    In a step with many attempts at least half of them must be that late.
    """
    late = [seen for seen in kafka.observations if late_ms(seen, KAFKA_LATE_MS)]
    attempts = Counter(seen.step for seen in kafka.observations)
    late_attempts = Counter(seen.step for seen in late)
    distributed = distributed_steps(kafka.observations)
    for seen in late:
        if seen.step not in distributed or 2 * late_attempts[seen.step] >= attempts[seen.step]:
            return f"{seen.step} #{seen.attempt}: {_when(seen)}"
    return None


def _when(seen: Observation) -> str:
    stalled = f", stalled for {seen.stalled_ms:.1f}" if seen.stalled_ms else ""
    return f"{seen.elapsed_ms:.1f} ms, {seen.lateness_ms:+.1f} of {seen.timing}{stalled}"


def _lateness(
    scenario: str, step: str, repeat: int, compared: LatenessComparison, known: Sequence[KnownDifference]
) -> Difference:
    kafka = f"p50 {compared.kafka.p50:g} ms, p95 {compared.kafka.p95:g} ms"
    sim = f"p50 {compared.sim.p50:g} ms, p95 {compared.sim.p95:g} ms: {compared.reason}"
    reason = reason_for(known, scenario, step, "lateness", sim)
    return Difference(step, 1, repeat, "lateness", kafka, sim, reason)


def _distributions(scenario: str, kafka: Run, sim: Run, machines: Machines) -> Iterator[tuple[str, LatenessComparison]]:
    """Yield the steps that both sides have often enough, each with its comparison."""
    both = distributed_steps(kafka.observations) & distributed_steps(sim.observations)
    for step in dict.fromkeys(seen.step for seen in kafka.observations):
        if step in both:
            theirs = [seen for seen in kafka.observations if seen.step == step]
            ours = [seen for seen in sim.observations if seen.step == step]
            yield (
                step,
                compare_samples(
                    f"{scenario} / {step}",
                    theirs[0].timing.kind,
                    [excused_lateness_ms(seen) for seen in theirs],
                    [excused_lateness_ms(seen) for seen in ours],
                    spread_ms=max(seen.timing.spread_ms for seen in (*theirs, *ours)),
                    machines=machines,
                ),
            )

"""The result of a comparison, and its files observations.jsonl and report.json."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.comparison.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from broker_sim_integration.comparison.differences import KnownDifference
    from broker_sim_integration.comparison.distribution import LatenessComparison, Machines
    from broker_sim_integration.comparison.runs import Run
    from broker_sim_integration.comparison.verdict import Difference, ScenarioResult

REFERENCE_TROUBLE: Final = 2
FAULTS: Final = (Verdict.DIFFERED, Verdict.LATE, Verdict.FLAKY)
"""Verdicts against the simulator: the reference is not the cause."""
SHOWN_VALUE: Final = 100


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed step of a scenario, and the reason in one line."""

    scenario: str
    step: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """The complete result of a comparison."""

    run_id: str
    catalogue_version: str
    reference: str
    reason: str
    """The reason for the selection of this reference."""
    facts: dict[str, Any]
    """Facts of the reference: Kafka's version, the machine and so on."""
    results: list[ScenarioResult]
    lateness: list[LatenessComparison]
    machines: Machines
    """Lateness of both runs' control timers; with a live reference both are the comparison's own."""
    simulator: dict[str, Any] = field(default_factory=dict)
    """Facts of the simulator: its command, the reason for its selection, and its build."""
    known: Sequence[KnownDifference] = ()
    """The rows of docs/reference/differences.md."""

    @property
    def exit_code(self) -> int:
        """0 if everything that was played agrees, 1 if not, 2 for a bad reference or if nothing was played."""
        counts = self.counts()
        if counts[Verdict.REFERENCE_TROUBLE] or not self.played:
            return REFERENCE_TROUBLE
        if any(counts[fault] for fault in FAULTS) or any(self._late_classes()):
            return 1
        return REFERENCE_TROUBLE if counts[Verdict.REFERENCE_LATE] else 0

    @property
    def played(self) -> int:
        """Number of scenarios that both sides played."""
        return len(self.results) - self.counts()[Verdict.NOT_PLAYED]

    def failures(self) -> list[Failure]:
        """Return the failures: one per step of each scenario, and per class of timing with late responses."""
        return [*(failure for result in self.results for failure in _failures(result)), *self._late_classes()]

    def _late_classes(self) -> Iterator[Failure]:
        for compared in self.lateness:
            if not compared.agrees and " / " not in compared.name:
                yield Failure(compared.name, "", f"lateness: {compared.reason}")

    def not_played(self) -> dict[str, list[str]]:
        """Return the names of the scenarios that were not played, by reason."""
        reasons: dict[str, list[str]] = {}
        for result in self.results:
            if result.verdict is Verdict.NOT_PLAYED:
                reasons.setdefault(result.not_played or "", []).append(result.scenario.name)
        return reasons

    def counts(self) -> Counter[Verdict]:
        """Return the number of scenarios with each verdict."""
        return Counter(result.verdict for result in self.results)

    def families(self) -> dict[str, Counter[Verdict]]:
        """Return the number of scenarios with each verdict, by family in the catalogue's order."""
        families: dict[str, Counter[Verdict]] = {}
        for result in self.results:
            families.setdefault(result.scenario.family, Counter())[result.verdict] += 1
        return families


def _failures(result: ScenarioResult) -> Iterator[Failure]:
    name = result.scenario.name
    if result.trouble:
        yield Failure(name, "", result.trouble)
    if result.verdict is Verdict.FLAKY:
        yield Failure(name, "", result.flakiness)
    if result.verdict is Verdict.REFERENCE_LATE:
        when = next(iter(result.kafka_late.values()))
        yield Failure(name, "", f"not judged, {result.flakiness}: {when}")
    steps: dict[str, list[Difference]] = {}
    for difference in undocumented(result):
        if difference.field != "trouble":
            steps.setdefault(difference.step, []).append(difference)
    for step, differences in steps.items():
        first = differences[0]
        more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
        kafka, sim = _short(first.kafka), _short(first.sim)
        yield Failure(name, step, f"{first.field}: Kafka {kafka}, simulator {sim}{more}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN_VALUE else f"{text[:SHOWN_VALUE]}..."


def undocumented(result: ScenarioResult) -> list[Difference]:
    """Return the differences that make a scenario fail."""
    return result.failures


def documented_reasons(report: Report) -> Counter[str]:
    """Return the number of differences that each reason of docs/reference/differences.md explains."""
    return Counter(
        difference.reason
        for result in report.results
        for difference in result.differences
        if difference.reason is not None
    )


def unused_rows(known: Iterable[KnownDifference], results: Iterable[ScenarioResult]) -> list[KnownDifference]:
    """Return the rows of docs/reference/differences.md that match no difference, although their scenario was played."""
    played = {
        result.scenario.name: result
        for result in results
        if result.verdict is not Verdict.NOT_PLAYED and not result.has_trouble
    }
    return [
        row
        for row in known
        if row.scenario in played
        and not any(
            row.fits(row.scenario, difference.step, difference.field, difference.sim)
            for difference in played[row.scenario].differences
        )
    ]


def write_observations(report: Report, path: Path) -> None:
    """Write one JSON line per observation of both sides."""
    with path.open("w", encoding="utf-8") as out:
        for result in report.results:
            for side, runs in (("kafka", result.kafka), ("sim", result.sim)):
                for line in _observation_lines(report.run_id, side, result, runs):
                    out.write(json.dumps(line, separators=(",", ":")) + "\n")


def _observation_lines(run_id: str, side: str, result: ScenarioResult, runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    for repeat, run in enumerate(runs, 1):
        for observation in run.observations:
            line = {
                "run_id": run_id,
                "side": side,
                "scenario": result.scenario.name,
                "repeat": repeat,
                **observation.to_json(),
            }
            del line["reason"]  # a text for readers of the scenario, which no job needs
            yield line


def write_json(report: Report, path: Path) -> None:
    """Write the complete report as one JSON document."""
    document = {
        "run_id": report.run_id,
        "catalogue_version": report.catalogue_version,
        "reference": report.reference,
        "reference_chosen_because": report.reason,
        "facts": report.facts,
        "simulator": report.simulator,
        "exit_code": report.exit_code,
        "failures": [asdict(failure) for failure in report.failures()],
        "not_played": report.not_played(),
        "unused_rows": [asdict(row) for row in unused_rows(report.known, report.results)],
        "verdicts": {verdict.value: count for verdict, count in report.counts().items()},
        "families": {
            family: {verdict.value: count for verdict, count in verdicts.items()}
            for family, verdicts in report.families().items()
        },
        "lateness_ms": [asdict(compared) | {"verdict": compared.verdict} for compared in report.lateness],
        "control_timer_ms": asdict(report.machines),
        "scenarios": [_scenario(result) for result in report.results],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _scenario(result: ScenarioResult) -> dict[str, Any]:
    return {
        "scenario": result.scenario.name,
        "family": result.scenario.family,
        "description": result.scenario.description,
        "verdict": result.verdict.value,
        "repeats": {
            "agreed": result.agreed,
            "documented": result.documented,
            "late": len(result.late),
            "differed": result.differed,
        },
        "observations": sum(len(run.observations) for run in result.kafka),
        "trouble": result.trouble,
        "not_played": result.not_played,
        "duration_ms": {
            "kafka": [round(run.duration_ms) for run in result.kafka],
            "sim": [round(run.duration_ms) for run in result.sim],
        },
        "differences": [asdict(difference) for difference in result.differences],
    }

"""The result of a comparison, and its files observations.jsonl and report.json."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from integration.comparison.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from integration.comparison.lateness import LatenessComparison
    from integration.comparison.runs import Run
    from integration.comparison.verdict import Difference, ScenarioResult

__all__ = ["Report", "documented_reasons", "undocumented", "write_json", "write_observations"]


@dataclass(frozen=True, slots=True)
class Report:
    """The whole result of a comparison."""

    run_id: str
    catalogue_version: str
    reference: str
    reason: str
    """Why this reference was chosen."""
    facts: dict[str, Any]
    """Facts of the reference: Kafka's version, the machine and so on."""
    results: list[ScenarioResult]
    lateness: list[LatenessComparison]

    @property
    def exit_code(self) -> int:
        """0 when all agree, 1 for a difference that is not documented, 2 for a bad reference."""
        verdicts = self.counts()
        if verdicts[Verdict.REFERENCE_TROUBLE]:
            return 2
        late = any(not compared.agrees for compared in self.lateness)
        return int(bool(verdicts[Verdict.DIFFERED] or verdicts[Verdict.FLAKY] or late))

    def counts(self) -> Counter[Verdict]:
        """Return how many scenarios came to each verdict."""
        return Counter(result.verdict for result in self.results)

    def families(self) -> dict[str, Counter[Verdict]]:
        """Return the same by family, in the catalogue's order."""
        families: dict[str, Counter[Verdict]] = {}
        for result in self.results:
            families.setdefault(result.scenario.family, Counter())[result.verdict] += 1
        return families


def undocumented(result: ScenarioResult) -> list[Difference]:
    """Return the differences that make a scenario fail."""
    return [found for found in result.differences if found.reason is None]


def documented_reasons(report: Report) -> Counter[str]:
    """Return how many differences each reason of docs/differences.md explains."""
    return Counter(
        found.reason
        for result in report.results
        for found in result.differences
        if found.reason is not None
    )


def write_observations(report: Report, path: Path) -> None:
    """Write one JSON line per observation of both sides."""
    with path.open("w", encoding="utf-8") as out:
        for result in report.results:
            for side, runs in (("kafka", result.kafka), ("sim", result.sim)):
                for line in _observation_lines(report.run_id, side, result, runs):
                    out.write(json.dumps(line, separators=(",", ":")) + "\n")


def _observation_lines(
    run_id: str, side: str, result: ScenarioResult, runs: Sequence[Run]
) -> Iterator[dict[str, Any]]:
    for repeat, run in enumerate(runs, 1):
        for seen in run.observations:
            yield {
                "run_id": run_id,
                "side": side,
                "scenario": result.scenario.name,
                "repeat": repeat,
                **seen.to_json(),
            }


def write_json(report: Report, path: Path) -> None:
    """Write the whole report as one JSON document."""
    document = {
        "run_id": report.run_id,
        "catalogue_version": report.catalogue_version,
        "reference": report.reference,
        "reference_chosen_because": report.reason,
        "facts": report.facts,
        "exit_code": report.exit_code,
        "verdicts": {verdict.value: count for verdict, count in report.counts().items()},
        "families": {
            family: {verdict.value: count for verdict, count in verdicts.items()}
            for family, verdicts in report.families().items()
        },
        "lateness_ms": [
            asdict(compared) | {"agrees": compared.agrees} for compared in report.lateness
        ],
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
            "differed": result.differed,
        },
        "observations": sum(len(run.observations) for run in result.kafka),
        "trouble": result.trouble,
        "duration_ms": {
            "kafka": [round(run.duration_ms) for run in result.kafka],
            "sim": [round(run.duration_ms) for run in result.sim],
        },
        "differences": [asdict(difference) for difference in result.differences],
    }

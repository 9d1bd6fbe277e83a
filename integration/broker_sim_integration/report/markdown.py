"""The comparison as a Markdown summary, for a commit's page or a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.comparison.distribution import RULE
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.report.report import documented_reasons, undocumented

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from broker_sim_integration.report.report import Report


def write_markdown(report: Report, path: Path) -> None:
    """Write `markdown` to a file."""
    path.write_text(markdown(report), encoding="utf-8")


def markdown(report: Report) -> str:
    """Return the summary: families, lateness, and each difference with its reason."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in report.counts().items())
    kafka = report.facts.get("kafka_version", "unknown")
    yield "# The simulator compared with a real Kafka"
    yield ""
    yield f"{len(report.results)} scenarios against Kafka {kafka} ({report.reference}): {counts}."
    yield f"Catalogue {report.catalogue_version}, run {report.run_id}."
    yield ""
    yield from _failures(report)
    columns = [verdict for verdict in Verdict if report.counts()[verdict]]
    yield from _row("family", *(verdict.value for verdict in columns))
    yield from _row(*["---"] * (len(columns) + 1))
    for family, verdicts in report.families().items():
        yield from _row(family, *(str(verdicts[verdict] or "") for verdict in columns))
    yield ""
    yield f"Lateness in ms; {RULE}."
    yield ""
    yield from _row("answers", "side", "count", "p50", "p95", "p99", "max", "judged")
    yield from _row(*["---"] * 8)
    for compared in report.lateness:
        for side, lateness in (("Kafka", compared.kafka), ("simulator", compared.sim)):
            numbers = (lateness.count, lateness.p50, lateness.p95, lateness.p99, lateness.maximum)
            name = compared.name if side == "Kafka" else ""
            yield from _row(name, side, *(f"{number:g}" for number in numbers), compared.reason or compared.verdict)
    yield from _differences(report)
    yield from _not_played(report)


def _failures(report: Report) -> Iterator[str]:
    failures = report.failures()
    if failures:
        yield from _row("failed", "step", "why")
        yield from _row(*["---"] * 3)
    else:
        yield "All that was played agrees." if report.played else "Nothing was played."
    for failure in failures:
        yield from _row(failure.scenario, failure.step, failure.why)
    yield ""


def _not_played(report: Report) -> Iterator[str]:
    reasons = report.not_played()
    if reasons:
        yield ""
        yield "## Not played"
        yield ""
    for reason, names in reasons.items():
        yield f"- {reason}: {', '.join(f'`{name}`' for name in names)}"


def _differences(report: Report) -> Iterator[str]:
    differing = [result for result in report.results if undocumented(result)]
    if differing:
        yield ""
        yield "## Differences"
        yield ""
        yield from _row("scenario", "step", "field", "Kafka", "simulator")
        yield from _row(*["---"] * 5)
    for result in differing:
        if result.flakiness:
            yield from _row(result.scenario.name, "", "flaky", result.flakiness, "")
        for difference in undocumented(result):
            yield from _row(
                result.scenario.name, difference.step, difference.field, str(difference.kafka), str(difference.sim)
            )
    reasons = documented_reasons(report)
    if reasons:
        yield ""
        yield "## Documented differences"
        yield ""
        yield from _row("times", "reason")
        yield from _row("---", "---")
    for reason, count in reasons.most_common():
        yield from _row(str(count), reason)


def _row(*cells: str) -> Iterator[str]:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    yield f"| {' | '.join(escaped)} |"

"""The comparison on a terminal: verdicts by family, all differences, how late the sides were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from integration.comparison.lateness import TOLERANCE_MS, TOLERANCE_REASON
from integration.comparison.verdict import Verdict
from integration.report.report import documented_reasons, undocumented

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from rich.console import Console

    from integration.comparison.lateness import LatenessComparison
    from integration.comparison.verdict import ScenarioResult
    from integration.report.report import Report

__all__ = ["print_report", "result_line"]

SHOWN_DIFFERENCES = 12
"""How many differences of one scenario are shown; report.json and report.html have all."""
STYLES = {
    Verdict.AGREED: "green",
    Verdict.DOCUMENTED: "yellow",
    Verdict.DIFFERED: "bold red",
    Verdict.FLAKY: "bold magenta",
    Verdict.REFERENCE_TROUBLE: "bold red",
    Verdict.SKIPPED: "dim",
}


def result_line(result: ScenarioResult) -> str:
    """Return one line of rich markup about the result of a scenario."""
    verdict = result.verdict
    counts = f" ({result.flakiness})" if result.flakiness else ""
    name = f"{result.scenario.family}/{result.scenario.name}"
    return f"[{STYLES[verdict]}]{verdict.value:>10}[/] {escape(name)}{counts}"


def print_report(report: Report, console: Console) -> None:
    """Print all tables: families, lateness, differences; last the counts of verdicts."""
    console.print(_families(report))
    console.print(_lateness(report.lateness))
    reasons = documented_reasons(report)
    if reasons:
        console.print(_documented(reasons))
    if any(undocumented(result) or result.trouble for result in report.results):
        console.print(_differences(report.results))
    kafka = report.facts.get("kafka_version", "?")
    console.print(
        f"{len(report.results)} scenarios against Kafka {kafka} ({report.reference}): "
        + ", ".join(f"{count} {verdict.value}" for verdict, count in report.counts().items())
    )


def _families(report: Report) -> Table:
    table = Table("family", title="Scenarios by family")
    shown = [verdict for verdict in Verdict if report.counts()[verdict]]
    for verdict in shown:
        table.add_column(verdict.value, justify="right", style=STYLES[verdict])
    for family, verdicts in report.families().items():
        table.add_row(family, *(str(verdicts[verdict] or "") for verdict in shown))
    return table


def _lateness(compared: Iterable[LatenessComparison]) -> Table:
    table = Table(
        "answers",
        "side",
        title=f"Lateness in ms; the simulator's p99 may exceed Kafka's by {TOLERANCE_MS:g}",
        caption=TOLERANCE_REASON,
    )
    for column in ("count", "p50", "p95", "p99", "max"):
        table.add_column(column, justify="right")
    table.add_column("judged")
    for row in compared:
        judged = "" if not row.judged else "agrees" if row.agrees else "[bold red]late[/]"
        for side, found in (("Kafka", row.kafka), ("simulator", row.sim)):
            numbers = (found.count, found.p50, found.p95, found.p99, found.maximum)
            is_first = side == "Kafka"
            name = escape(row.name) if is_first else ""
            cells = (f"{number:g}" for number in numbers)
            table.add_row(name, side, *cells, judged if is_first else "", end_section=not is_first)
    return table


def _documented(reasons: Counter[str]) -> Table:
    table = Table("times", "reason", title="Documented differences")
    for reason, count in reasons.most_common():
        table.add_row(str(count), escape(reason))
    return table


def _differences(results: Iterable[ScenarioResult]) -> Table:
    table = Table("scenario", "step", "field", "Kafka", "simulator", title="Differences")
    for result in results:
        if result.trouble:
            table.add_row(result.scenario.name, "", "trouble", escape(result.trouble), "")
        differences = [found for found in undocumented(result) if found.field != "trouble"]
        for found in differences[:SHOWN_DIFFERENCES]:
            attempt = f" #{found.attempt}" if found.attempt > 1 else ""
            table.add_row(
                result.scenario.name,
                escape(found.step + attempt),
                escape(found.field),
                escape(str(found.kafka)),
                escape(str(found.sim)),
            )
        if len(differences) > SHOWN_DIFFERENCES:
            more = f"and {len(differences) - SHOWN_DIFFERENCES} more"
            table.add_row(result.scenario.name, more, "", "", "")
    return table

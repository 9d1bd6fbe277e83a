"""The comparison on a terminal: verdicts, lateness, differences, and finally the failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from broker_sim_integration.comparison.distribution import RULE
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.report.lateness_rows import lateness_rows
from broker_sim_integration.report.lateness_text import lateness_lines
from broker_sim_integration.report.report import documented_reasons, undocumented, unused_rows

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from rich.console import Console

    from broker_sim_integration.comparison.verdict import ScenarioResult
    from broker_sim_integration.report.report import Report

SHOWN_DIFFERENCES = 12
"""Maximum number of differences shown for one scenario; report.json and report.html have all."""
STYLES = {
    Verdict.AGREED: "green",
    Verdict.DOCUMENTED: "yellow",
    Verdict.DIFFERED: "bold red",
    Verdict.LATE: "bold red",
    Verdict.FLAKY: "bold magenta",
    Verdict.REFERENCE_TROUBLE: "bold red",
    Verdict.REFERENCE_LATE: "bold red",
    Verdict.NOT_PLAYED: "dim",
}
BUSY_MS: Final = 3.0
"""Lateness in ms above which a machine counts as busy: on an idle machine a timer of 5 ms wakes less than 1 ms late."""


def result_line(result: ScenarioResult) -> str:
    """Return one line of rich markup with the result of a scenario."""
    verdict = result.verdict
    counts = f" ({result.flakiness})" if result.flakiness else ""
    name = f"{result.scenario.family}/{result.scenario.name}"
    return f"[{STYLES[verdict]}]{verdict.value:>10}[/] {escape(name)}{counts}"


def print_report(report: Report, console: Console) -> None:
    """Print families, lateness, differences, scenarios that were not played, and finally the failures."""
    console.print(_families(report))
    console.print(f"Lateness; {RULE}:", highlight=False)
    for line in lateness_lines(lateness_rows(report.results, report.lateness)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    reasons = documented_reasons(report)
    if reasons:
        console.print(_documented(reasons))
    if any(map(undocumented, report.results)):
        console.print(_differences(report.results))
    for row in unused_rows(report.known, report.results):
        place = f"{row.scenario}, {row.step}, {row.field}"
        console.print(f"docs/reference/differences.md: fits nothing any more: {place}", markup=False)
    _print_not_played(report, console)
    _print_summary(report, console)


def _families(report: Report) -> Table:
    table = Table("family", title="Scenarios by family")
    columns = [verdict for verdict in Verdict if report.counts()[verdict]]
    for verdict in columns:
        table.add_column(verdict.value, justify="right", style=STYLES[verdict])
    for family, verdicts in report.families().items():
        table.add_row(family, *(str(verdicts[verdict] or "") for verdict in columns))
    return table


def _documented(reasons: Counter[str]) -> Table:
    table = Table("times", "reason", title="Documented differences")
    for reason, count in reasons.most_common():
        table.add_row(str(count), escape(reason))
    return table


def _differences(results: Iterable[ScenarioResult]) -> Table:
    table = Table("scenario", "step", "field", "Kafka", "simulator", title="Differences")
    for result in results:
        differences = [difference for difference in undocumented(result) if difference.field != "trouble"]
        for difference in differences[:SHOWN_DIFFERENCES]:
            attempt = f" #{difference.attempt}" if difference.attempt > 1 else ""
            table.add_row(
                result.scenario.name,
                escape(difference.step + attempt),
                escape(difference.field),
                escape(str(difference.kafka)),
                escape(str(difference.sim)),
            )
        if len(differences) > SHOWN_DIFFERENCES:
            more = f"and {len(differences) - SHOWN_DIFFERENCES} more"
            table.add_row(result.scenario.name, more, "", "", "")
    return table


def _print_not_played(report: Report, console: Console) -> None:
    for reason, names in report.not_played().items():
        console.print(f"not played: {len(names)} ({reason})", markup=False, highlight=False)
        console.print(Padding(", ".join(names), (0, 0, 0, 2)), style="dim", highlight=False)


def _print_summary(report: Report, console: Console) -> None:
    failures = report.failures()
    for failure in failures:
        place = " / ".join(filter(None, (failure.scenario, failure.step)))
        console.print("[bold red]failed[/]", end=" ")
        console.print(f"{place}: {failure.why}", markup=False, highlight=False, soft_wrap=True)
    kafka = report.facts.get("kafka_version", "?")
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in report.counts().items())
    console.print(
        f"{len(report.results)} scenarios of the {report.simulator.get('build', '?')} simulator "
        f"against Kafka {kafka} ({report.reference}): {counts}",
        highlight=False,
    )
    if not report.played:
        console.print("[bold red]nothing was played[/]")
    elif not failures:
        console.print("[green]all that was played agrees[/]")
    elif report.exit_code and not report.counts()[Verdict.DIFFERED]:
        _print_whether_busy(report, console)


def _print_whether_busy(report: Report, console: Console) -> None:
    control = report.machines.sim
    if control is not None and control.p95 >= BUSY_MS:
        console.print(
            f"this machine was busy: a timer of 5 ms woke {control.p95:.1f} ms late (p95); "
            "compare again when other programs have ended",
            highlight=False,
            soft_wrap=True,
        )

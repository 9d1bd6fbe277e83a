"""The command `broker-sim-compare`: compares the simulator with a real Kafka."""

from __future__ import annotations

import logging
import signal
import uuid
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import structlog
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from integration.comparison.both_sides import compare_sides
from integration.comparison.differences import read_known_differences, reason_for
from integration.comparison.drift import drift_between
from integration.comparison.lateness import compare_lateness
from integration.comparison.recorded import RECORDING, RecordedSide, write_recording
from integration.comparison.runs import KafkaSide, Side, SimulatorSide
from integration.reference.errors import ReferenceClusterError
from integration.reference.selection import ReferenceKind, select_reference
from integration.report.html_page import write_html
from integration.report.markdown import write_markdown
from integration.report.report import Report, write_json, write_observations
from integration.report.terminal import print_report, result_line
from integration.scenarios.catalogue import CATALOGUE, catalogue_version, select
from integration.scenarios.document import catalogue_markdown
from purgatory.clock import SystemClock

if TYPE_CHECKING:
    from integration.comparison.verdict import ScenarioResult
    from integration.scenarios.scenario import Scenario

__all__ = ["main"]

REFERENCE_TROUBLE = 2


@click.group(invoke_without_command=True)
@click.option(
    "--reference",
    "asked",
    default="auto",
    show_default=True,
    help="auto, containers, jvm, recorded or bootstrap=HOST:PORT.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/compare"),
    show_default=True,
    help="Directory for observations.jsonl and the reports.",
)
@click.option(
    "--scenario", "patterns", multiple=True, help="Name, family or pattern; may be repeated."
)
@click.option("--repeat", "repeats", default=1, show_default=True, type=click.IntRange(1))
@click.option("--record", is_flag=True, help="Keep the real side's observations as the recording.")
@click.option(
    "--record-to",
    type=click.Path(file_okay=False, path_type=Path),
    default=RECORDING,
    help="Where --record writes; the shipped recording by default.",
)
@click.pass_context
def main(
    context: click.Context,
    asked: str,
    out: Path,
    patterns: tuple[str, ...],
    repeats: int,
    record: bool,
    record_to: Path,
) -> None:
    """Compare the simulated cluster with a real Kafka, scenario by scenario.

    Exit code 0 when everything agrees or is documented, 1 for any other difference, 2 for trouble
    with the reference.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        scenarios = select(patterns)
        selection = select_reference(asked)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except ReferenceClusterError as error:
        _fail(error)
    _quiet_simulator()
    # A comparison that is ended by SIGTERM stops its brokers too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(stderr=True)
    console.print(f"reference: {selection.kind.value} ({selection.reason})", highlight=False)
    version = catalogue_version()
    try:
        kafka: KafkaSide | RecordedSide
        if selection.kind is ReferenceKind.RECORDED:
            kafka = RecordedSide(version)
        else:
            kafka = KafkaSide(selection, lambda line: console.print(f"[dim]{line}"))
        results = _compare(kafka, scenarios, repeats, console)
    except ReferenceClusterError as error:
        _fail(error)
    report = Report(
        run_id=uuid.uuid4().hex,
        catalogue_version=version,
        reference=selection.kind.value,
        reason=selection.reason,
        facts=dict(kafka.facts),
        results=results,
        lateness=compare_lateness(results),
    )
    _write(report, out)
    print_report(report, Console())
    if record:
        _record(record_to, report, console)
    raise SystemExit(report.exit_code)


@main.command("list")
@click.option("--names", is_flag=True, help="Names only, one per line.")
@click.option("--markdown", is_flag=True, help="As docs/scenarios.md.")
def list_scenarios(names: bool, markdown: bool) -> None:
    """List the scenarios by family."""
    if markdown:
        click.echo(catalogue_markdown(), nl=False)
        return
    if names:
        for found in CATALOGUE:
            click.echo(found.name)
        return
    for family, group in groupby(CATALOGUE, key=lambda found: found.family):
        click.echo(family)
        for found in group:
            click.echo(f"  {found.name}\n      {found.description}")


@main.command("drift")
@click.argument("fresh", type=click.Path(exists=True, file_okay=False, path_type=Path))
def drift(fresh: Path) -> None:
    """Compare the shipped recording with the one in FRESH: outcomes, not times.

    Fields with a documented difference to the simulator, such as random ids, are left out.

    Exit code 0 when the outcomes are equal, 1 when not, 2 when a recording cannot be read.
    """
    version = catalogue_version()
    try:
        found = list(drift_between(RecordedSide(version), RecordedSide(version, fresh)))
    except ReferenceClusterError as error:
        _fail(error)
    known = read_known_differences()
    found = [one for one in found if reason_for(known, one.scenario, one.label, one.field) is None]
    for one in found:
        click.echo(str(one))
    click.echo(f"{len(found)} outcomes differ", err=True)
    raise SystemExit(int(bool(found)))


def _compare(
    kafka: Side, scenarios: list[Scenario], repeats: int, console: Console
) -> list[ScenarioResult]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("comparing", total=len(scenarios))

        def show(result: ScenarioResult) -> None:
            progress.console.print(result_line(result), highlight=False, soft_wrap=True)
            progress.advance(task)

        return compare_sides(
            kafka,
            SimulatorSide(),
            scenarios,
            repeats=repeats,
            known=read_known_differences(),
            on_result=show,
        )


def _write(report: Report, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_observations(report, out / "observations.jsonl")
    write_json(report, out / "report.json")
    write_markdown(report, out / "report.md")
    write_html(report, out / "report.html")


def _record(directory: Path, report: Report, console: Console) -> None:
    recorded_at = datetime.fromtimestamp(SystemClock().wall_clock_ms() / 1000, UTC)
    left_out = write_recording(
        directory,
        report.results,
        catalogue_version=report.catalogue_version,
        facts=report.facts,
        recorded_at=recorded_at.isoformat(timespec="seconds"),
    )
    for name in left_out:
        console.print(f"not recorded: {name}", highlight=False)


def _quiet_simulator() -> None:
    """Let the simulator log errors only, so that the progress can be read."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def _fail(error: ReferenceClusterError) -> NoReturn:
    click.echo(f"reference: {error}", err=True)
    raise SystemExit(REFERENCE_TROUBLE)

"""The command `broker-sim-compare`: compares the simulator with a real Kafka."""

from __future__ import annotations

import signal
import uuid
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click
from broker_sim_purgatory.clock import SystemClock
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from broker_sim.cli.standard_streams import Program
from broker_sim_integration.comparison.both_sides import compare_sides
from broker_sim_integration.comparison.differences import read_known_differences
from broker_sim_integration.comparison.distribution import Machines
from broker_sim_integration.comparison.drift import comparable, drift_between
from broker_sim_integration.comparison.expected_time import announcement
from broker_sim_integration.comparison.lateness import compare_lateness
from broker_sim_integration.comparison.reader_waits import ReaderControl
from broker_sim_integration.comparison.recorded import RECORDINGS, RecordedSide, write_recording
from broker_sim_integration.comparison.runs import KafkaSide, Side, SimulatorSide
from broker_sim_integration.comparison.version import catalogue_version
from broker_sim_integration.fuzz.command import as_version, fuzz
from broker_sim_integration.reference.errors import ReferenceClusterError
from broker_sim_integration.reference.jars import KAFKA_VERSIONS, release_of
from broker_sim_integration.reference.selection import ReferenceKind, select_reference
from broker_sim_integration.report.html_page import write_html
from broker_sim_integration.report.last_failed import keep_report, read_last_comparison
from broker_sim_integration.report.markdown import write_markdown
from broker_sim_integration.report.report import Report, write_json, write_observations
from broker_sim_integration.report.terminal import print_report, result_line
from broker_sim_integration.scenarios.catalogue import CATALOGUE, select
from broker_sim_integration.scenarios.demo import DEMO, demo_scenarios
from broker_sim_integration.scenarios.document import catalogue_markdown
from broker_sim_integration.simulator.command import select_simulator
from broker_sim_integration.simulator.errors import SimulatorError

if TYPE_CHECKING:
    from broker_sim_integration.comparison.differences import KnownDifference
    from broker_sim_integration.comparison.verdict import ScenarioResult
    from broker_sim_integration.reference.selection import Selection
    from broker_sim_integration.report.last_failed import LastComparison
    from broker_sim_integration.scenarios.scenario import Scenario

TROUBLE_WITH_A_SIDE = 2
FILES: Final = {
    "observations.jsonl": write_observations,
    "report.json": write_json,
    "report.md": write_markdown,
    "report.html": write_html,
}
"""The files of a comparison, and the function that writes each."""


@click.group("broker-sim-compare", cls=Program, invoke_without_command=True)
@click.option(
    "--reference",
    "reference",
    default="auto",
    show_default=True,
    help="auto, containers, jvm, recorded or bootstrap=HOST:PORT.",
)
@click.option(
    "--simulator",
    "simulator_command",
    default="own",
    show_default=True,
    help="own (this Python's) or a command.",
)
@as_version
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/compare"),
    show_default=True,
    help="Directory for observations.jsonl and the reports.",
)
@click.option("--scenario", "patterns", multiple=True, help="Name, family or pattern; may be repeated.")
@click.option("--demo", is_flag=True, help="Play the scenarios of the demo, on one cluster.")
@click.option("--last-failed", is_flag=True, help="Play only scenarios that failed in the report in --out.")
@click.option("--repeat", "repeats", default=1, show_default=True, type=click.IntRange(1))
@click.option("--record", is_flag=True, help="Store Kafka's outcomes in the recording.")
@click.option(
    "--record-to",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the recording that --record adds to  [default: the shipped one of the release].",
)
@click.pass_context
def main(
    context: click.Context,
    reference: str,
    simulator_command: str,
    release: str,
    out: Path,
    patterns: tuple[str, ...],
    demo: bool,
    last_failed: bool,
    repeats: int,
    record: bool,
    record_to: Path | None,
) -> None:
    """Compare the simulated cluster with a real Kafka, scenario by scenario.

    Exit code 0 if all outcomes agree or their differences are documented, 1 for any other difference, 2 if
    the reference or the simulator fails, or nothing was played.
    """
    if context.invoked_subcommand is not None:
        return
    if demo and (patterns or record):
        raise click.UsageError("--demo has its own scenarios and cluster: leave out --scenario and --record")
    try:
        scenarios = demo_scenarios() if demo else select(patterns)
        last = _read_last(out) if last_failed else None
        scenarios = scenarios if last is None else last.failed_of(scenarios)
        _require_client()
        simulator = select_simulator(simulator_command, release)
        selection = select_reference(reference, version=KAFKA_VERSIONS[release])
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except ReferenceClusterError as error:
        _fail(error)
    # A comparison ended by SIGTERM stops its brokers too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(stderr=True)
    console.print(f"reference: {selection.kind.value} ({selection.reason})", highlight=False)
    console.print(f"simulator: {simulator} ({simulator.reason})", highlight=False, soft_wrap=True)
    if demo:
        _print_demo(console)
    console.print(announcement(scenarios, selection.kind, repeats), highlight=False)
    sim = SimulatorSide(simulator)
    known = read_known_differences()
    try:
        kafka = _kafka_side(selection, release, console)
        with ReaderControl() as control:
            results = _compare(kafka, sim, scenarios, repeats, known, console, control)
    except (ReferenceClusterError, SimulatorError) as error:
        _fail(error)
    machine = control.lateness()
    recorded = kafka.control if isinstance(kafka, RecordedSide) else machine
    machines = Machines(recorded, machine)
    report = Report(
        run_id=uuid.uuid4().hex,
        catalogue_version=catalogue_version(),
        reference=selection.kind.value,
        reason=selection.reason,
        facts=dict(kafka.facts),
        results=results,
        lateness=compare_lateness(results, machines),
        machines=machines,
        simulator=sim.facts,
        known=known,
    )
    exit_code = _publish(report, out, last)
    if record:
        _record(record_to or RECORDINGS / release, report, console)
    raise SystemExit(exit_code)


@main.command("list")
@click.option("--names", is_flag=True, help="Names only, one per line.")
@click.option("--markdown", is_flag=True, help="Print a Markdown page with the docstring of each scenario.")
def list_scenarios(names: bool, markdown: bool) -> None:
    """List the scenarios by family."""
    if markdown:
        click.echo(catalogue_markdown(), nl=False)
        return
    if names:
        for scenario in CATALOGUE:
            click.echo(scenario.name)
        return
    for family, group in groupby(CATALOGUE, key=lambda scenario: scenario.family):
        click.echo(family)
        for scenario in group:
            click.echo(f"  {scenario.name}\n      {scenario.description}")


@main.command("drift")
@click.argument("fresh", type=click.Path(exists=True, file_okay=False, path_type=Path))
def drift(fresh: Path) -> None:
    """Compare the recording in FRESH with the shipped one of its release: all outcomes, no times.

    Exit code 0 if the outcomes are equal, 1 if not, 2 if nothing can be compared.
    """
    try:
        new = RecordedSide(fresh)
        shipped = RecordedSide(RECORDINGS / release_of(new.facts["kafka_version"]))
    except ReferenceClusterError as error:
        _fail(error)
    compared = comparable(shipped, new)
    differences = list(drift_between(shipped, new))
    for difference in differences:
        click.echo(str(difference))
    left_out = sorted(new.versions.keys() - compared)
    if left_out:
        click.echo(f"not shipped at this version: {', '.join(left_out)}", err=True)
    click.echo(f"{len(compared)} scenarios compared, {len(differences)} outcomes differ", err=True)
    raise SystemExit(int(bool(differences)) if compared else TROUBLE_WITH_A_SIDE)


main.add_command(fuzz)


def _kafka_side(selection: Selection, release: str, console: Console) -> KafkaSide | RecordedSide:
    if selection.kind is ReferenceKind.RECORDED:
        return RecordedSide(RECORDINGS / release)
    return KafkaSide(selection, lambda line: console.print(f"[dim]{line}"))


def _read_last(out: Path) -> LastComparison:
    """Return the failed scenarios of the last report; exit with one line if there is nothing to play."""
    try:
        last = read_last_comparison(out)
    except ValueError as error:
        click.echo(str(error), err=True)
        raise SystemExit(TROUBLE_WITH_A_SIDE) from None
    if not last.scenarios:
        _print_others(last)
        click.echo(f"no scenario failed in {last.report}; its exit code was {last.exit_code}")
        raise SystemExit(last.exit_code)
    return last


def _print_others(last: LastComparison) -> None:
    """Print the earlier failures that only a run of all scenarios can judge."""
    for name in last.others:
        click.echo(f"this earlier failure needs a run of all scenarios: {name}", err=True)


def _print_demo(console: Console) -> None:
    grid = Table.grid(padding=(0, 2))
    for part, names in DEMO.items():
        grid.add_row(f"  {part}", "\n".join(names))
    console.print("on three real brokers and three simulated ones, at the same time:")
    console.print(grid, highlight=False)


def _compare(
    kafka: Side,
    sim: Side,
    scenarios: list[Scenario],
    repeats: int,
    known: list[KnownDifference],
    console: Console,
    control: ReaderControl,
) -> list[ScenarioResult]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("comparing", total=len(scenarios))

        def show(result: ScenarioResult) -> None:
            progress.console.print(result_line(result), highlight=False, soft_wrap=True)
            progress.advance(task)

        return compare_sides(kafka, sim, scenarios, repeats=repeats, known=known, on_result=show, control=control)


def _publish(report: Report, out: Path, last: LastComparison | None) -> int:
    """Write and print the report; return the exit code, which also depends on the last comparison."""
    if last is not None:
        keep_report(out, FILES)
    _write(report, out)
    print_report(report, Console())
    click.echo(f"report: {(out / 'report.html').resolve()}")
    if last is None:
        return report.exit_code
    _print_others(last)
    return last.exit_code_with(report.exit_code)


def _write(report: Report, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, write in FILES.items():
        write(report, out / name)


def _record(directory: Path, report: Report, console: Console) -> None:
    recorded_at = datetime.fromtimestamp(SystemClock().wall_clock_ms() / 1000, UTC)
    left_out = write_recording(
        directory,
        report.results,
        facts=report.facts,
        recorded_at=recorded_at.isoformat(timespec="seconds"),
        control=report.machines.kafka,
    )
    for name in left_out:
        console.print(f"not recorded: {name}", highlight=False)


def _require_client() -> None:
    """Exit with one line if the scenarios' client is not installed."""
    if find_spec("confluent_kafka") is None:
        click.echo("confluent-kafka is not installed: pip install broker-sim-compare", err=True)
        raise SystemExit(TROUBLE_WITH_A_SIDE)


def _fail(error: ReferenceClusterError | SimulatorError) -> NoReturn:
    side = "simulator" if isinstance(error, SimulatorError) else "reference"
    click.echo(f"{side}: {error}", err=True)
    raise SystemExit(TROUBLE_WITH_A_SIDE)

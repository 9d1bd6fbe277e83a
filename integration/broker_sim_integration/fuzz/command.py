"""The command `broker-sim-compare fuzz`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from broker_sim.protocol.release import DEFAULT_RELEASE
from broker_sim_integration.fuzz.areas.all_areas import AREAS, areas_named
from broker_sim_integration.fuzz.difference import read_known, read_known_chances, unknown
from broker_sim_integration.fuzz.report import as_scenario, read_sequence, write_finding
from broker_sim_integration.fuzz.run import FuzzRun
from broker_sim_integration.reference.errors import ReferenceClusterError
from broker_sim_integration.reference.jars import KAFKA_VERSIONS
from broker_sim_integration.reference.selection import ReferenceKind, select_reference
from broker_sim_integration.simulator.command import select_simulator
from broker_sim_integration.simulator.errors import SimulatorError

if TYPE_CHECKING:
    from broker_sim_integration.fuzz.areas.area import Area
    from broker_sim_integration.fuzz.fuzzer import Finding
    from broker_sim_integration.fuzz.sequence import Sequence

TROUBLE = 2

as_version = click.option(
    "--as-version",
    "release",
    type=click.Choice(list(KAFKA_VERSIONS)),
    default=DEFAULT_RELEASE,
    show_default=True,
    help="The Kafka release on both sides.",
)
"""The option of commands that compare."""


@click.command("fuzz")
@click.option("--seeds", default=20, show_default=True, type=click.IntRange(1), help="Number of seeds for each area.")
@click.option("--first", default=1, show_default=True, help="The first seed.")
@click.option("--areas", default=",".join(AREAS), show_default=True, help="Areas, separated by commas.")
@click.option("--reference", default="auto", show_default=True, help="auto, containers, jvm or bootstrap=HOST:PORT.")
@click.option("--simulator", default="own", show_default=True, help="own (this Python's) or a command.")
@as_version
@click.option(
    "--play",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Play a JSON file of an earlier run instead of seeds; may be repeated.",
)
@click.option(
    "--at-once", default=6, show_default=True, type=click.IntRange(1), help="Number of sequences played at once."
)
@click.option("--shrink/--no-shrink", default=True, show_default=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/fuzz"),
    show_default=True,
    help="Directory for differing sequences, as JSON and as scenario code.",
)
def fuzz(
    seeds: int,
    first: int,
    areas: str,
    reference: str,
    simulator: str,
    release: str,
    files: tuple[Path, ...],
    at_once: int,
    shrink: bool,
    out: Path,
) -> None:
    """Play random sequences of requests on the simulator and on a real Kafka.

    A differing sequence is played again, shrunk, and printed as a scenario. Exit code 0 if all outcomes agree or
    their differences are documented, 1 for any other difference, 2 if a side fails.
    """
    try:
        drawn = _drawn(areas_named(areas), files, range(first, first + seeds))
        selection = select_reference(reference, version=KAFKA_VERSIONS[release])
        command = select_simulator(simulator, release)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except ReferenceClusterError as error:
        _fail("reference", error)
    if selection.kind is ReferenceKind.RECORDED:
        raise click.UsageError(f"fuzzing needs a real Kafka ({selection.reason})")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(stderr=True)
    console.print(f"reference: {selection.kind.value} ({selection.reason})", highlight=False)
    run = FuzzRun(selection, command, read_known(), lambda line: console.print(f"[dim]{line}"), at_once, shrink)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    total = sum(len(sequences) for _, sequences in drawn)
    try:
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            task = progress.add_task("fuzzing", total=total)

            def show(finding: Finding) -> None:
                progress.advance(task)
                _show(finding, progress.console, out)

            totals = run.play(drawn, show)
    except SimulatorError as error:
        _fail("simulator", error)
    except ReferenceClusterError as error:
        _fail("reference", error)
    click.echo(str(totals))
    raise SystemExit(totals.exit_code)


def _drawn(areas: list[Area], files: tuple[Path, ...], seeds: range) -> list[tuple[Area, list[Sequence]]]:
    if files:
        return [(AREAS[one.area], [one]) for one in map(read_sequence, files)]
    return [(area, [area.draw(seed) for seed in seeds]) for area in areas]


def _show(finding: Finding, console: Console, out: Path) -> None:
    """Write a finding without agreement to its file, and print the scenario of a difference."""
    if finding.trouble is not None:
        console.print(f"{finding.sequence.name}: {finding.trouble}", highlight=False, markup=False)
    elif finding.by_chance:
        console.print(chance_line(finding), highlight=False, markup=False)
    elif finding.differences:
        console.print(f"{finding.sequence.name}: differs", highlight=False)
        click.echo(as_scenario(finding))
    else:
        return
    write_finding(finding, out)


def chance_line(finding: Finding) -> str:
    """Return the line for a sequence that agreed when it was played again, with the documented reason if any.

    Only its first action that differed counts, because those after it may differ as a consequence.
    """
    rows = read_known_chances()
    first = [one for one in finding.once_different if one.index == finding.once_different[0].index]
    without_reason = unknown(first, rows)
    if without_reason:
        return f"{finding.sequence.name}: differed once, no reason is known: {without_reason[0]}"
    reasons = {row.reason for row in rows if any(map(row.fits, first))}
    return f"{finding.sequence.name}: differed by chance: {' '.join(sorted(reasons))}"


def _fail(side: str, error: Exception) -> NoReturn:
    click.echo(f"{side}: {error}", err=True)
    raise SystemExit(TROUBLE)

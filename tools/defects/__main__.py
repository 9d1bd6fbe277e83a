"""`python -m tools.defects`: puts each defect into a copy of the project and looks for a test that fails."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tools.defects.defect import ROOT, Defect, DefectError, read_defects
from tools.defects.runner import Result, Runner
from tools.defects.tiers import TIERS

if TYPE_CHECKING:
    from collections.abc import Sequence

CONSOLE = Console(width=160, soft_wrap=True)


class Report:
    """The results of one commit, written to a file after each one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._tree = tree_digest()
        self.results: dict[str, Result] = {}
        if path is not None and path.exists():
            kept = json.loads(path.read_text())
            if kept["tree"] == self._tree:
                self.results = {name: Result(**found) for name, found in kept["results"].items()}

    def of(self, defect: Defect) -> Result | None:
        """Return the stored result of the defect in its current form, None without one."""
        result = self.results.get(defect.id)
        return result if result is not None and result.digest == defect.digest else None

    def keep(self, defect: Defect, result: Result) -> None:
        """Store a result and write the file."""
        self.results[defect.id] = result
        if self._path is not None:
            results = {name: found.to_json() for name, found in sorted(self.results.items())}
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps({"tree": self._tree, "results": results}, indent=1))


def tree_digest() -> str:
    """Return a digest of the product and its tests, without the list of defects."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", ".", ":!tools/defects"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    digest = hashlib.sha256()
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            digest.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    return digest.hexdigest()


@click.command()
@click.argument("names", nargs=-1)
@click.option("--tier", type=click.Choice(TIERS), default="fast", help="Last tier of tests to run.")
@click.option("--soak", is_flag=True, help="The same as --tier soak.")
@click.option("--near", is_flag=True, help="Only the tests of each defect's own room.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Number of defects run in parallel.")
@click.option("--report", type=click.Path(path_type=Path), help="Continue from this report, and write it.")
@click.option("--at-least", type=int, help="Number of defects that must be caught. [default: all]")
@click.option("--list", "only_list", is_flag=True, help="List the defects and exit.")
def main(
    names: tuple[str, ...],
    tier: str,
    soak: bool,
    near: bool,
    jobs: int,
    report: Path | None,
    at_least: int | None,
    only_list: bool,
) -> None:
    """Run the defects NAMES (ids or rooms; default: all) until a test catches them."""
    chosen = choose(names)
    if only_list:
        for defect in chosen:
            CONSOLE.print(f"[bold]{defect.id}[/] ({defect.file}): {defect.shows}")
        return
    tier = "soak" if soak else tier
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that copies are removed
    kept = Report(report)
    run(chosen, kept, Runner(tier, only_near=near), jobs)
    results = {defect: found for defect in chosen if (found := kept.of(defect)) is not None}
    CONSOLE.print(table(results))
    caught = sum(result.caught_by is not None for result in results.values())
    wanted = len(chosen) if at_least is None else at_least
    CONSOLE.print(f"{caught} of {len(chosen)} are caught up to tier {tier}; required: {wanted}")
    for defect, result in results.items():
        if result.caught_by is None:
            CONSOLE.print(f"[red]not caught:[/] {defect.id} ({defect.file}): {defect.shows}")
    sys.exit(caught < wanted)


def choose(names: Sequence[str]) -> list[Defect]:
    """Return the defects of these ids or rooms, all without any."""
    try:
        defects = read_defects()
        for defect in defects:
            defect.patched((ROOT / defect.file).read_text())
    except (DefectError, OSError) as error:
        raise click.ClickException(str(error)) from error
    known = {defect.id for defect in defects} | {defect.room for defect in defects}
    if unknown := sorted(set(names) - known):
        raise click.ClickException(f"unknown defect or room: {', '.join(unknown)}")
    return [each for each in defects if not names or each.id in names or each.room in names]


def run(chosen: Sequence[Defect], report: Report, runner: Runner, jobs: int) -> None:
    """Run the defects that the report does not have as caught."""
    left = [each for each in chosen if (known := report.of(each)) is None or not known.caught_by]
    before = {each.id: known for each in left if (known := report.of(each)) is not None}
    if not left:
        return
    with Progress(console=CONSOLE) as progress, runner:
        task = progress.add_task("defects", total=len(left))
        for defect, result in runner.run_all(left, before, jobs):
            report.keep(defect, result)
            progress.print(f"{defect.id}: {describe(result)}")
            progress.advance(task)


def describe(result: Result) -> str:
    """Return a result as one line."""
    if result.caught_by is None:
        return f"[red]not caught[/] in {result.seconds} s"
    return f"{result.stage}, {result.seconds} s: {result.how} {result.caught_by}"


def table(results: dict[Defect, Result]) -> Table:
    """Return the number of catches by room and stage."""
    counts = Counter((defect.room, result.stage) for defect, result in results.items())
    columns = ("module", "room", "fast", "slow module", "slow room", "test", "soak", None)
    shown = Table("room", *(stage or "not caught" for stage in columns), "seconds")
    for room in sorted({defect.room for defect in results}):
        found = [str(counts[room, stage] or "") for stage in columns]
        seconds = sum(each.seconds for defect, each in results.items() if defect.room == room)
        shown.add_row(room, *found, f"{seconds:.0f}")
    totals = [str(sum(counts[r, s] for r, s in counts if s == stage)) for stage in columns]
    shown.add_row("all", *totals, f"{sum(each.seconds for each in results.values()):.0f}")
    return shown


if __name__ == "__main__":
    main()

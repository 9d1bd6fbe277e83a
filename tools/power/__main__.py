"""`python -m tools.power`: see the package."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tools.power.bench import STEP, Finding, Tree, count_seeds, counted, read_mutants

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.defects.defect import Defect


@click.command()
@click.argument("names", nargs=-1)
@click.option("--starts", default=20, show_default=True, help="Number of starts.")
@click.option("--first", default=0, show_default=True, help="The first seed of the first start.")
@click.option("--limit", default=100, show_default=True, help="Maximum number of seeds from each start.")
@click.option("--jobs", default=1, show_default=True, help="Number of mutants at once.")
@click.option("--at-most", type=float, help="Exit code 1 if a median is larger.")
@click.option("--json", "as_json", type=click.Path(path_type=Path), help="Write the counts there.")
def main(
    *,
    names: tuple[str, ...],
    starts: int,
    first: int,
    limit: int,
    jobs: int,
    at_most: float | None,
    as_json: Path | None,
) -> None:
    """Count the seeds until each mutant is found."""
    mutants = chosen(names)
    begins = [first + STEP * number for number in range(starts)]
    results: list[Finding] = []
    click.echo(HEAD)
    for finding in count_all(mutants, begins, limit, jobs):
        results.append(finding)
        click.echo(row(finding))
    if as_json is not None:
        as_json.write_text(json.dumps([asdict(each) for each in results], indent=1))
    if at_most is not None and any(each.median > at_most for each in results):
        sys.exit(1)


def chosen(names: Sequence[str]) -> list[Defect]:
    """Return the mutants of these names; without names those that few seeds have to find."""
    mutants = read_mutants()
    if unknown := sorted(set(names) - mutants.keys()):
        raise click.ClickException(f"no mutant has this name: {', '.join(unknown)}")
    return [mutants[name] for name in names or mutants if names or name in counted()]


def count_all(mutants: Sequence[Defect], begins: Sequence[int], limit: int, jobs: int) -> Iterator[Finding]:
    """Yield what `jobs` trees at a time count, as it comes."""

    def count(mutant: Defect) -> Finding:
        with Tree(mutant) as tree:
            return count_seeds(tree, mutant.id, begins, limit)

    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(count, mutant) for mutant in mutants]):
            yield done.result()


HEAD: Final = "| mutant | median | worst | missed | seconds | found by |\n|---|--:|--:|--:|--:|---|"


def row(finding: Finding) -> str:
    """Return the line of a mutant in a table."""
    invariants = ", ".join(
        f"{name} {count}" + (f" (alone {finding.alone[name]})" if name in finding.alone else "")
        for name, count in finding.invariants.items()
    )
    worst = f"> {finding.limit}" if finding.missed else f"{max(finding.seeds)}"
    median = f"> {finding.limit}" if finding.median > finding.limit else f"{finding.median:g}"
    seconds = finding.median * finding.seconds
    return f"| {finding.mutant} | {median} | {worst} | {finding.missed or ''} | {seconds:.1f} | {invariants} |"


if __name__ == "__main__":
    main()

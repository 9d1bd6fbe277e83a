"""Runs the soak: `python -m tools.soak [PART ...]`, or `--list`.

A part that has passed on this state of the tree is not run again, unless with `--again`. Ctrl-C ends the
running part; the next call continues there, part `chaos` at the first missing seed. Exits with 1 if a part
has failed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from tools.soak import report
from tools.soak.parts import KEPT, PARTS, Part

if TYPE_CHECKING:
    from pathlib import Path

CONSOLE = Console(soft_wrap=True, highlight=False)


def run(part: Part, kept: Path) -> report.Outcome:
    """Run the commands of a part up to the first failure, continuing from the files in `kept`."""
    started = time.monotonic()
    failed = None
    kept.mkdir(parents=True, exist_ok=True)
    for words in part.commands:
        command = [word.replace(KEPT, os.path.relpath(kept, report.ROOT)) for word in words]
        CONSOLE.print(f"$ {shlex.join(command)}", markup=False)
        if subprocess.run(command, cwd=report.ROOT, check=False).returncode:
            failed = shlex.join(command)
            break
    return report.Outcome(failed is None, round(time.monotonic() - started, 1), failed)


def show(outcomes: dict[str, report.Outcome]) -> None:
    """Print a row for each part."""
    table = Table("part", "", "seconds", "shows")
    for name, part in PARTS.items():
        outcome = outcomes.get(name)
        verdict = "not run" if outcome is None else "passed" if outcome.passed else "FAILED"
        seconds = "" if outcome is None else f"{outcome.seconds:.0f}"
        table.add_row(name, verdict, seconds, part.shows)
    CONSOLE.print(table)


@click.command()
@click.argument("names", nargs=-1, metavar="[PART]...")
@click.option("--list", "only_list", is_flag=True, help="Print the parts and their results.")
@click.option("--again", is_flag=True, help="Also run parts that have passed.")
def main(names: tuple[str, ...], only_list: bool, again: bool) -> None:
    """Run the parts of the soak, by default all, and print their results."""
    if unknown := [name for name in names if name not in PARTS]:
        raise click.UsageError(f"unknown part {unknown[0]!r}; parts: {', '.join(PARTS)}")
    tree = report.tree()
    outcomes = report.read(tree)
    if only_list:
        show(outcomes)
        return
    chosen = names or tuple(PARTS)
    for number, name in enumerate(chosen, 1):
        done = outcomes.get(name)
        if done is not None and done.passed and not again:
            CONSOLE.print(f"{name}: passed already on this tree, in {done.seconds:.0f} s")
            continue
        CONSOLE.rule(f"{name} ({number} of {len(chosen)})")
        kept = report.kept(tree, name)
        if again:
            shutil.rmtree(kept, ignore_errors=True)
        outcomes[name] = run(PARTS[name], kept)
        report.write(tree, outcomes)
    show(outcomes)
    sys.exit(not all(outcomes[name].passed for name in chosen))


if __name__ == "__main__":
    main()

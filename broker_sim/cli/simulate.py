"""`broker-sim simulate`: random faults in virtual time, seed after seed."""

from __future__ import annotations

import os
import random
import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console

from broker_sim.chaos.random_run.checks.history import lost_text
from broker_sim.chaos.random_run.random_runs import RandomOutcome, RandomRuns
from broker_sim.chaos.random_run.schedule import DEFAULT_DURATION_MS
from broker_sim.chaos.report import as_test
from broker_sim.chaos.search import SeedOutcome, run_seeds
from broker_sim.cli.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.chaos.random_run import RunSummary

LARGEST_SEED = 1 << 32


@click.command("simulate")
@click.option("--runs", type=click.IntRange(1), default=100, show_default=True, help="Number of runs.")
@click.option("--seed", type=click.IntRange(0), help="Seed of the first run [default: random].")
@click.option("--jobs", type=click.IntRange(1), help="Number of processes [default: one for each core].")
@click.option(
    "--duration",
    "duration_s",
    type=click.IntRange(1, 3_600),
    default=DEFAULT_DURATION_MS // 1_000,
    show_default=True,
    help="Virtual seconds of faults in each run.",
)
@click.option("--power-loss", is_flag=True, help="Use simulated disks, with power losses of one, some and all brokers.")
@click.option("--shrink/--no-shrink", "shrinks", default=True, help="Minimize the first failure.")
def command(*, runs: int, seed: int | None, jobs: int | None, duration_s: int, power_loss: bool, shrinks: bool) -> None:
    """Run clusters with random faults in virtual time and check their invariants.

    Prints one line for each failing seed, with the command that repeats it, and at the end the smallest schedule that
    fails as the first one did, as a test. Exit code 1 if a seed failed.
    """
    first = random.SystemRandom().randrange(LARGEST_SEED) if seed is None else seed
    processes = min(jobs or os.cpu_count() or 1, runs)
    console = Console(stderr=True)
    console.print(f"seeds {first} to {first + runs - 1}, {processes} processes", highlight=False)
    runs_of_seeds = RandomRuns(duration_s * 1_000, power_loss)
    failed: list[SeedOutcome] = []
    passed: list[RunSummary] = []
    outcomes = run_seeds(runs_of_seeds, range(first, first + runs), processes)  # before the thread of the bar
    with progress_bar(console) as progress:
        task = progress.add_task(_transactions(passed), total=runs)
        for outcome in outcomes:
            if outcome.invariant is not None:
                failed.append(outcome)
                _print_failure(outcome, runs_of_seeds)
            else:
                passed.append(outcome.summary)
                _print_lost(outcome.summary)
            progress.update(task, advance=1, description=_transactions(passed))
    if failed and shrinks:
        _print_shrunk(min(failed), runs_of_seeds, console)
    acknowledged = sum(each.acknowledged for each in passed)
    click.echo(f"{len(passed)} of {runs} runs passed, {acknowledged} batches acknowledged")
    click.echo(_transactions(passed))
    if failed:
        sys.exit(1)


def _transactions(passed: Sequence[RunSummary]) -> str:
    committed = sum(each.transactions_committed for each in passed)
    aborted = sum(each.transactions_aborted for each in passed)
    in_doubt = sum(each.transactions_in_doubt for each in passed)
    fenced = sum(each.producers_fenced for each in passed)
    return (
        f"transactions: {committed} committed, {aborted} aborted, {in_doubt} in doubt; producers fenced {fenced} times"
    )


def _print_lost(summary: RunSummary) -> None:
    if summary.lost:
        click.echo(
            f"seed {summary.seed}: {len(summary.lost)} unflushed records lost in power failures: "
            f"{lost_text(summary.lost)}"
        )


def _print_failure(outcome: SeedOutcome, runs: RandomRuns) -> None:
    what = outcome.text.partition("; last events")[0]
    repeat = f"broker-sim simulate --runs 1 --seed {outcome.seed}"
    if runs.duration_ms != DEFAULT_DURATION_MS:
        repeat += f" --duration {runs.duration_ms // 1_000}"
    if runs.power_loss:
        repeat += " --power-loss"
    click.echo(f"seed {outcome.seed}: {what}; repeat: {repeat}")


def _print_shrunk(outcome: SeedOutcome, runs: RandomRuns, console: Console) -> None:
    schedule = runs.draw(outcome.seed)
    with console.status(f"shrinking the schedule of seed {outcome.seed}"):
        shrunk = runs.shrink(RandomOutcome(schedule, invariant=outcome.invariant))
    source = as_test(
        shrunk.schedule,
        outcome.invariant or "",
        "from broker_sim.chaos.random_run import Schedule, run_schedule",
        "run_schedule(schedule)",
    )
    before, after = len(schedule.actions), len(shrunk.schedule.actions)
    click.echo(f"\n# {before} faults -> {after}, in {shrunk.tries} runs:\n{source}")

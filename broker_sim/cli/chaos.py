"""`broker-sim chaos`: a test of an application under faults, seed after seed, in virtual time."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.console import Console

from broker_sim.chaos.exploring import MAX_RUNS
from broker_sim.chaos.faults.action import ScheduleError
from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.schedule import Schedule
from broker_sim.chaos.search import ChaosTest, NoSuchTestError, SeedOutcome, examine, examine_failed, run_seeds
from broker_sim.cli import chaos_command
from broker_sim.cli.progress import progress_bar
from broker_sim.runtime.virtual import pin_hash_seed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.chaos.report import Failure

EXAMINED: int = 3
"""So many seeds of each invariant are shrunk: they may fail for different reasons."""


class _Chaos(click.Command):
    """Two commands of one name: a command after `--` is run in real time."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if "--" in args:
            return chaos_command.command.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("chaos", cls=_Chaos)
@click.argument("test", metavar="MODULE:FUNCTION")
@click.option("--seeds", type=click.IntRange(1), default=100, show_default=True, help="Number of seeds.")
@click.option("--seed", "first", type=click.IntRange(0), default=0, show_default=True, help="First seed.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; one for each core by default.")
@click.option("--faults", metavar="KIND,...", help=f"Only these kinds of {', '.join(KINDS)}.")
@click.option("--workers", type=click.IntRange(1), help="Workers that faults hit; 2 by default.")
@click.option("--brokers", type=click.IntRange(1), help="Brokers of the cluster; 3 by default.")
@click.option("--duration", type=click.FloatRange(1), help="Seconds of faults; 20 by default.")
@click.option(
    "--order",
    type=click.Choice(["fifo", "seeded"]),
    help="Which ready task runs first: the one that waits longest (default), or a random one.",
)
@click.option(
    "--exhaustive",
    flag_value="workers",
    help="Run the test in all orders of its workers' turns, without faults unless a schedule is given.",
)
@click.option(
    "--exhaustive-brokers",
    "exhaustive",
    flag_value="brokers",
    help="The same for the orders in which messages of several brokers reach another one.",
)
@click.option("--max-runs", type=click.IntRange(1), help=f"Of --exhaustive; {MAX_RUNS} unless given.")
@click.option(
    "--latency",
    type=click.IntRange(0),
    metavar="MS",
    help="That a message takes at most; drawn by each seed unless given.",
)
@click.option(
    "--repair-aiokafka", is_flag=True, default=None, help="Mend bugs of aiokafka that make correct applications fail."
)
@click.option(
    "--schedule",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run only this schedule, copied from a report.",
)
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the outcome of each seed in this file; seeds that are already in it are not run again.",
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Also write failures to this file."
)
@click.option("--shrink/--no-shrink", "shrinks", default=True, help="Make failures small.")
def command(
    *,
    test: str,
    seeds: int,
    first: int,
    jobs: int | None,
    faults: str | None,
    workers: int | None,
    brokers: int | None,
    duration: float | None,
    order: str | None,
    latency: int | None,
    exhaustive: str | None,
    max_runs: int | None,
    repair_aiokafka: bool | None,
    file: Path | None,
    results: Path | None,
    json_file: Path | None,
    shrinks: bool,
) -> None:
    """Run an application's test under crashes, cuts, pauses and failovers that seeds draw.

    FUNCTION is `async def test(chaos)`: it starts workers, lets the faults happen, and says what must
    hold then; see docs/chaos.md. What its marker `chaos` of pytest says counts here too, unless it is
    given. Prints for each way to fail the faults that it needs, a time line, and a test to paste. Exit
    code 1 if any seed failed.

    `broker-sim chaos [OPTIONS] -- COMMAND...` runs any command beside a cluster that has faults, in real
    time; its options are told by `broker-sim chaos --help --`.
    """
    pin_hash_seed()
    try:
        chaos_test = ChaosTest.of(
            test,
            faults=None if faults is None else faults.split(","),
            brokers=brokers,
            workers=workers,
            duration_s=duration,
            order=order,
            latency_ms=latency,
            exhaustive=exhaustive,
            max_runs=max_runs,
            repair_aiokafka=repair_aiokafka,
        )
        schedule = None if file is None else Schedule.parse(file.read_text())
        if chaos_test.exhaustive and (schedule is None or not schedule.deviations):
            _run_orders(chaos_test, schedule or chaos_test.draw(first), json_file, shrinks)
            return
        if schedule is not None:
            _run_one(chaos_test, schedule, json_file)
            return
    except (NoSuchTestError, ScheduleError) as error:
        raise click.UsageError(str(error)) from None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--faults") from None
    kept = _Results(results, chaos_test)
    wanted = range(first, first + seeds)
    missing = [seed for seed in wanted if seed not in kept.outcomes]
    console = Console(stderr=True)
    processes = min(jobs or os.cpu_count() or 1, len(missing) or 1)
    known = len(wanted) - len(missing)
    text = f"seeds {first} to {wanted[-1]}, {known} of them known, processes: {processes}"
    console.print(text, highlight=False)
    _run_all(chaos_test, missing, processes, kept, console)
    outcomes = [kept.outcomes[seed] for seed in wanted]
    failed = [outcome for outcome in outcomes if outcome.invariant is not None]
    failures = _examined(chaos_test, failed, shrinks, console)
    for failure in failures:
        click.echo(f"{failure}\n")
    if json_file is not None:
        json_file.write_text(json.dumps([failure.to_json() for failure in failures], indent=1))
    click.echo(_summary(outcomes, failed))
    if failed:
        sys.exit(1)


def _run_one(test: ChaosTest, schedule: Schedule, json_file: Path | None) -> None:
    failure = examine(test, schedule, shrinks=False)
    if failure is None:
        click.echo("the test passes under this schedule")
        return
    _tell_one(failure, json_file)


def _run_orders(test: ChaosTest, schedule: Schedule, json_file: Path | None, shrinks: bool) -> None:
    with Console(stderr=True).status(f"running at most {test.max_runs} orders"):
        found = test.explore(schedule)
    click.echo(str(found))
    if found.failure is not None:
        _tell_one(examine_failed(test, found.failure, shrinks=shrinks), json_file)


def _tell_one(failure: Failure, json_file: Path | None) -> NoReturn:
    click.echo(str(failure))
    if json_file is not None:
        json_file.write_text(json.dumps([failure.to_json()], indent=1))
    sys.exit(1)


class _Results:
    """The outcomes of seeds, in a file if there is one: a line of JSON for each."""

    def __init__(self, path: Path | None, test: ChaosTest) -> None:
        self.outcomes: dict[int, SeedOutcome] = {}
        self._path = path
        self._test = repr(test)
        if path is not None and path.exists():
            for number, line in enumerate(path.read_text().splitlines(), 1):
                self._read(line, f"{path}:{number}")

    def _read(self, line: str, place: str) -> None:
        try:
            row: dict[str, Any] = json.loads(line)
            of_test = row.pop("test")
            outcome = SeedOutcome(**row)
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # a line that the end of an earlier run cut off: its seed runs again
        if of_test != self._test:
            raise click.BadParameter(
                f"{place} was written with other options; give another file", param_hint="--results"
            )
        self.outcomes[outcome.seed] = outcome

    def add(self, outcome: SeedOutcome) -> None:
        """Keep an outcome."""
        self.outcomes[outcome.seed] = outcome
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"test": self._test, **outcome._asdict()}) + "\n")


def _run_all(test: ChaosTest, seeds: Sequence[int], jobs: int, kept: _Results, console: Console) -> None:
    failures, cpu_s = 0, 0.0
    with progress_bar(console) as progress:
        task = progress.add_task("no failure", total=len(seeds))
        for done, outcome in enumerate(run_seeds(test, seeds, jobs), 1):
            kept.add(outcome)
            failures += outcome.invariant is not None
            cpu_s += outcome.cpu_s
            text = f"{failures} failures, {done / cpu_s:.1f} seeds a second and core"
            progress.update(task, advance=1, description=text)


def _examined(test: ChaosTest, failed: Iterable[SeedOutcome], shrinks: bool, console: Console) -> list[Failure]:
    """Shrink some seeds of each invariant; return one failure for each set of faults that causes one."""
    by_invariant: dict[str, list[SeedOutcome]] = defaultdict(list)
    for outcome in failed:
        by_invariant[outcome.invariant or ""].append(outcome)
    distinct: dict[tuple[str | None, tuple[str, ...]], Failure] = {}
    for outcomes in by_invariant.values():
        for outcome in outcomes[:EXAMINED]:
            with console.status(f"shrinking the schedule of seed {outcome.seed}"):
                failure = examine(test, test.draw(outcome.seed), shrinks=shrinks)
            if failure is None:
                console.print(f"seed {outcome.seed} failed before and passes now: see docs/chaos.md")
                continue
            distinct.setdefault((failure.small.invariant, failure.kinds), failure)
    return list(distinct.values())


def _summary(outcomes: Sequence[SeedOutcome], failed: Sequence[SeedOutcome]) -> str:
    cpu_s = sum(outcome.cpu_s for outcome in outcomes)
    passed, rate = len(outcomes) - len(failed), len(outcomes) / max(cpu_s, 1e-9)
    lines = [f"{passed} of {len(outcomes)} seeds passed, {rate:.1f} a second and core"]
    for invariant, count in Counter(outcome.invariant for outcome in failed).most_common():
        seeds = [str(outcome.seed) for outcome in failed if outcome.invariant == invariant]
        more = ", ..." if len(seeds) > 5 else ""
        lines.append(f"  {count} failed: {invariant} (seeds {', '.join(seeds[:5])}{more})")
    return "\n".join(lines)

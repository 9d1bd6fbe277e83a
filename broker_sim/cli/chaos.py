"""`broker-sim chaos`: a test, or programs as workers, under faults in virtual time; or a command in real time."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import click
from rich.console import Console

from broker_sim.chaos.command import CommandRun
from broker_sim.chaos.faults.action import ScheduleError
from broker_sim.chaos.faults.weights import weights_beside_a_command
from broker_sim.chaos.history import JUDGEMENT_FORMS, read_judgement
from broker_sim.chaos.link import line_of, link_to
from broker_sim.chaos.program_workers import ProgramTest, check_of
from broker_sim.chaos.schedule import DEFAULT_DURATION_MS, MAX_FAULTS, Schedule, draw_schedule
from broker_sim.chaos.search import ApplicationTest, NamedTest, NoSuchTestError, SeedOutcome, run_seeds
from broker_sim.chaos.settings import Settings, settings_by_name
from broker_sim.chaos.sightings import Sightings
from broker_sim.chaos.timeline import HOW_TO_SEE_ALL, MAX_LINES, as_json, timeline_text
from broker_sim.cli.logs import logs_on_stderr
from broker_sim.cli.parameters import WithCommand, check_command
from broker_sim.cli.progress import progress_bar
from broker_sim.cli.settings_options import read_settings, settings_options
from broker_sim.errors import ApiError, ConfigError, MissingExtraError
from broker_sim.runtime.scheduler import new_event_loop
from broker_sim.runtime.virtual import pin_hash_seed
from broker_sim.runtime.virtual.programs.compiling import NoVirtualProgramsError, library

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker_sim.chaos.report import Failure
    from broker_sim.chaos.run import Outcome

EXAMINED: Final = 3
"""Maximum number of seeds that are shrunk per violated invariant; they may fail for different reasons."""
TEST_DEFAULTS: Final = {"seeds": 100}
"""Default settings that differ from those of the pytest marker."""
COMMAND_DEFAULTS: Final = {"duration_s": 60}
TEST_OPTIONS: Final = ("jobs", "results", "shrinks", "is_shown", "page_file", "playground")
COMMAND_OPTIONS: Final = ("begin_with", "written")
PROGRAM_OPTIONS: Final = ("check",)
NOT_FOR_PROGRAMS: Final = ("exhaustive", "max_runs", "repair_aiokafka", "playground")
NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126


def _checked_judgements(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the judgements. Raises UsageError for one that cannot be read."""
    try:
        for text in texts:
            read_judgement(text)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    return texts


@click.command("chaos", cls=WithCommand)
@click.argument("test", required=False, metavar="MODULE:FUNCTION | [--virtual] -- COMMAND...")
@click.option(
    "--seed",
    "first",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="First seed; with a command the only seed.",
)
@settings_options
@click.option(
    "--virtual",
    "is_virtual",
    is_flag=True,
    help="Run COMMAND as --workers programs in virtual time, seed after seed, not once in real time.",
)
@click.option(
    "--check",
    metavar="CHECK.py[::FUNCTION]",
    help="With --virtual: file with `async def check(chaos)`, or FUNCTION, to run after the faults, and an optional "
    "`prepare(chaos)`, to run before the workers [default: exit codes of workers must be 0, unless --judge is used].",
)
@click.option("--jobs", type=click.IntRange(1), help="Number of processes [default: one for each core].")
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Store the outcome of each seed in this file; seeds already in it are not run again.",
)
@click.option("--shrink/--no-shrink", "shrinks", default=True, help="Minimize failures [default: --shrink].")
@click.option(
    "--begin-with",
    metavar="TEXT",
    default="",
    help="With a command: faults begin with the first client whose id contains TEXT [default: with any client].",
)
@click.option(
    "--write-schedule",
    "written",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With a command: write the schedule to this file.",
)
@click.option(
    "--judge",
    "judgements",
    multiple=True,
    metavar="CHECK",
    callback=_checked_judgements,
    help="Check to make when a command has ended, or with --virtual 30 s after the faults; exit code 1 if it "
    f"fails. One of {', '.join(JUDGEMENT_FORMS)}; may be repeated.",
)
@click.option(
    "--timeline",
    "is_shown",
    is_flag=True,
    help="Show the time line of --schedule, or of the first seed, even if it passes.",
)
@click.option(
    "--page",
    "page_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the failing run, or that of --timeline, to this HTML file, which plays it in a browser. A second "
    "kind of failure goes to FILE-2.html, and so on.",
)
@click.option(
    "--link",
    "playground",
    metavar="URL",
    help="Print for each failure a link that opens it, with program and seed, in the playground at this address.",
)
@click.option("--full", "is_full", is_flag=True, help="Show all lines of time lines.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write failures, or the time line with --timeline or a command, to this file.",
)
def command(
    *,
    test: str | None,
    words: Sequence[str] | None,
    first: int,
    is_virtual: bool,
    check: str | None,
    jobs: int | None,
    results: Path | None,
    shrinks: bool,
    begin_with: str,
    written: Path | None,
    judgements: Sequence[str],
    is_shown: bool,
    is_full: bool,
    json_file: Path | None,
    page_file: Path | None,
    playground: str | None,
    **settings: Any,
) -> None:
    """Run an application's test under crashes, cuts, pauses and failovers drawn from seeds.

    FUNCTION is `async def test(chaos)`: it starts workers, lets the faults happen, and checks what must hold
    afterwards; see docs/chaos/index.md. Options override the arguments of its pytest marker `chaos`. Prints for each
    kind of failure the faults that it needs, a time line, and a test to paste. Exit code 1 if a seed failed, or if no
    seed saw what `chaos.sometimes` and `chaos.reached` name.

    COMMAND after -- is a program in any language. It runs once in real time, while the brokers fail by the schedule
    of --seed. It finds the cluster in KAFKA_BOOTSTRAP_SERVERS, and its control port in BROKER_SIM_CONTROL. Faults begin
    with the first request of a client and end after --duration. The time line goes to stderr; the exit code is that of
    the command. The fault `freeze` stops the command and its child processes, and happens only if it is named.

    With --virtual each of --workers runs COMMAND as an unmodified program in virtual time: they are killed, frozen and
    cut off, seed after seed, and failures are reported like those of a test. The output of workers is on the time line.
    """
    context = click.get_current_context()
    output = _Output(json_file, page_file, playground, is_full=is_full)
    if (test is None) == (words is None):
        raise click.UsageError("name a test as MODULE:FUNCTION, or write a command after --", context)
    if is_virtual:
        if words is None:
            raise click.UsageError("--virtual runs a command as workers: write it after --", context)
        _refuse(context, NOT_FOR_PROGRAMS, "a test in Python")
        check_command(words, _NotFoundError, in_virtual_time=True)
    else:
        _refuse(context, PROGRAM_OPTIONS, "--virtual")
    if words is not None and not is_virtual:
        of_tests = {name for name, setting in settings_by_name().items() if not setting.beside_a_command}
        _refuse(context, {*of_tests, *TEST_OPTIONS}, "a test, not of a command")
        _run_command(words, first, read_settings(settings), begin_with, written, judgements, output)
    _refuse(context, COMMAND_OPTIONS, "a command after -- in real time")
    if words is None:
        _refuse(context, ("judgements",), "a command after --; a test has chaos.history")
    pin_hash_seed()
    settings = read_settings(settings)
    try:
        search_test = _test_of(test, settings) if words is None else _programs_of(words, check, judgements, settings)
        outcomes = _Results(results, search_test)
    except (NoSuchTestError, ConfigError) as error:
        raise click.UsageError(str(error)) from None
    if is_shown:
        text = search_test.settings.schedule
        _run_one(search_test, search_test.draw(first) if text is None else Schedule.parse(text), output, is_shown=True)
    else:
        _run_test(search_test, first, outcomes, output, jobs=jobs, shrinks=shrinks)


def _refuse(context: click.Context, names: Iterable[str], owner: str) -> None:
    """Raise UsageError if one of these options was used; they belong to `owner`."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} is an option of {owner}", context)


# -- a command in real time -----------------------------------------------------------------------------


def _run_command(
    words: Sequence[str],
    seed: int,
    settings: Mapping[str, Any],
    begin_with: str,
    written: Path | None,
    judgements: Sequence[str],
    output: _Output,
) -> NoReturn:
    check_command(words, _NotFoundError)
    try:
        checked = Settings(**{**COMMAND_DEFAULTS, **settings})
        schedule = _schedule_beside(seed, checked)
        if written is not None:
            written.write_text(f"{schedule}\n")
        run = CommandRun(
            words,
            schedule,
            topics=checked.topics,
            configs=checked.configs,
            begin_with=begin_with,
            judgements=judgements,
        )
        with logs_on_stderr("error"), asyncio.Runner(loop_factory=new_event_loop) as runner:
            outcome = runner.run(run.run())
    except (ConfigError, ApiError, ScheduleError) as error:
        raise click.UsageError(str(error)) from None
    except MissingExtraError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise _CannotStartError(f"{error.filename or words[0]}: {error.strerror}") from None
    click.echo(f"\n{outcome.text(is_full=output.is_full)}", err=True)
    output.write_json(outcome.to_json())
    sys.exit(outcome.code)


def _schedule_beside(seed: int, settings: Settings) -> Schedule:
    """Return the schedule of the settings, or that of the seed.

    Raises ConfigError for faults that need virtual time.
    """
    if settings.schedule is not None:
        return Schedule.parse(settings.schedule)
    duration_ms = round(settings.duration_s * 1_000)
    try:
        faults = weights_beside_a_command(settings.faults)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return draw_schedule(
        seed,
        faults=faults,
        brokers=settings.brokers,
        workers=1,
        duration_ms=duration_ms,
        most_faults=max(MAX_FAULTS, MAX_FAULTS * duration_ms // DEFAULT_DURATION_MS),
    )


class _CannotStartError(click.ClickException):
    """The command cannot be started; the exit code is the one that a shell uses."""

    exit_code = NOT_EXECUTABLE


class _NotFoundError(_CannotStartError):
    """There is no such command."""

    exit_code = NOT_FOUND


# -- a test, or programs as workers, in virtual time ------------------------------------------------------


def _test_of(name: str | None, settings: Mapping[str, Any]) -> NamedTest:
    assert name is not None
    return NamedTest.of(name, TEST_DEFAULTS, **settings)


def _programs_of(
    words: Sequence[str], check: str | None, judgements: Sequence[str], settings: Mapping[str, Any]
) -> ProgramTest:
    """Return the test that runs the command as workers. Raises ConfigError, NoSuchTestError and ClickException."""
    try:
        library()
    except NoVirtualProgramsError as error:
        raise click.ClickException(str(error)) from None
    checked = Settings(**{**TEST_DEFAULTS, **settings})
    return ProgramTest(tuple(words), check_of(check) if check else "", checked, tuple(judgements))


def _run_test(
    test: ApplicationTest,
    first: int,
    outcomes: _Results,
    output: _Output,
    *,
    jobs: int | None,
    shrinks: bool,
) -> None:
    text = test.settings.schedule
    schedule = None if text is None else Schedule.parse(text)
    if test.settings.exhaustive and (schedule is None or not schedule.deviations):
        _run_orders(test, schedule or test.draw(first), output, shrinks)
    elif schedule is not None:
        _run_one(test, schedule, output)
    else:
        seeds = range(first, first + test.settings.seeds)
        _run_many(test, seeds, outcomes, output, jobs=jobs, shrinks=shrinks)


def _run_many(
    test: ApplicationTest, seeds: range, results: _Results, output: _Output, *, jobs: int | None, shrinks: bool
) -> None:
    missing = [seed for seed in seeds if seed not in results.outcomes]
    console = Console(stderr=True)
    processes = min(jobs or os.cpu_count() or 1, len(missing) or 1)
    already = len(seeds) - len(missing)
    text = f"seeds {seeds[0]} to {seeds[-1]}, {already} of them stored, processes: {processes}"
    console.print(text, highlight=False)
    _run_all(test, missing, processes, results, console)
    outcomes = [results.outcomes[seed] for seed in seeds]
    failed = [outcome for outcome in outcomes if outcome.invariant is not None]
    failures = _examined(test, failed, shrinks, console)
    for number, failure in enumerate(failures, 1):
        click.echo(f"{failure.text(is_full=output.is_full)}\n")
        output.write_page(test, failure.small, number)
        output.write_link(test, failure)
    output.write_json([failure.to_json() for failure in failures])
    click.echo(_summary(outcomes, failed))
    sightings = Sightings()
    for outcome in outcomes:
        sightings.add(outcome.seen, outcome.faults)
    for line in sightings.lines():
        click.echo(line)
    reason = sightings.failure()
    if reason is not None:
        click.echo(reason)
    if failed or reason is not None:
        sys.exit(1)


def _run_one(test: ApplicationTest, schedule: Schedule, output: _Output, *, is_shown: bool = False) -> None:
    failure = test.examine(schedule, shrinks=False)
    if failure is not None:
        _report_one(test, failure, output)
    if is_shown:
        outcome = test.run(schedule, observe=True)
        click.echo(f"{timeline_text(outcome.moments, None if output.is_full else MAX_LINES, HOW_TO_SEE_ALL)}\n")
        output.write_json([{"schedule": str(schedule).splitlines(), "timeline": as_json(outcome.moments)}])
        output.write_page(test, outcome)
    click.echo("the test passes under this schedule")


def _run_orders(test: ApplicationTest, schedule: Schedule, output: _Output, shrinks: bool) -> None:
    with Console(stderr=True).status(f"running at most {test.settings.max_runs} orders"):
        exploration = test.explore(schedule)
    click.echo(str(exploration))
    first = exploration.failure
    if first is not None:
        _report_one(test, test.shrink(first) if shrinks else test.observe(first, first.schedule), output)


def _report_one(test: ApplicationTest, failure: Failure, output: _Output) -> NoReturn:
    click.echo(failure.text(is_full=output.is_full))
    output.write_page(test, failure.small)
    output.write_link(test, failure)
    output.write_json([failure.to_json()])
    sys.exit(1)


class _Output(NamedTuple):
    """Where the output goes, and how much of it."""

    json_file: Path | None
    page_file: Path | None
    playground: str | None
    is_full: bool

    def write_json(self, values: object) -> None:
        """Write plain values to the file of --json, if any."""
        if self.json_file is not None:
            self.json_file.write_text(json.dumps(values, indent=1))

    def write_page(self, test: ApplicationTest, outcome: Outcome, number: int = 1) -> None:
        """Write the run as a page to the file of --page, if any; further runs go to files of their own."""
        if self.page_file is None:
            return
        file = self.page_file if number == 1 else self.page_file.with_stem(f"{self.page_file.stem}-{number}")
        click.echo(f"{test.page_of(outcome).write(file)}\n")

    def write_link(self, test: ApplicationTest, failure: Failure) -> None:
        """Print the link of --link to the playground, or the reason why there is none."""
        if self.playground is None:
            return
        assert isinstance(test, NamedTest)
        click.echo(f"{line_of(partial(link_to, self.playground, test, failure.seed))}\n")


class _Results:
    """The outcomes of seeds, stored in the file of --results, if any, as lines of JSON."""

    def __init__(self, path: Path | None, test: ApplicationTest) -> None:
        self.outcomes: dict[int, SeedOutcome] = {}
        self._path = path
        self._test = repr(test)
        if path is not None and path.exists():
            for number, line in enumerate(path.read_text().splitlines(), 1):
                self._read(line, f"{path}:{number}")

    def _read(self, line: str, place: str) -> None:
        try:
            row: dict[str, Any] = json.loads(line)
            stored_test = row.pop("test")
            outcome = SeedOutcome(**row)
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # a line cut off at the end of an earlier run: its seed runs again
        if stored_test != self._test:
            raise click.BadParameter(
                f"{place} was written with other options; choose another file", param_hint="--results"
            )
        self.outcomes[outcome.seed] = outcome

    def add(self, outcome: SeedOutcome) -> None:
        """Store an outcome."""
        self.outcomes[outcome.seed] = outcome
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"test": self._test, **_row(outcome)}) + "\n")


def _row(outcome: SeedOutcome) -> dict[str, Any]:
    row = outcome._asdict()
    del row["summary"]
    return row


def _run_all(test: ApplicationTest, seeds: Sequence[int], jobs: int, results: _Results, console: Console) -> None:
    failures, cpu_s = 0, 0.0
    outcomes = run_seeds(test, seeds, jobs)  # before the thread of the bar
    with progress_bar(console) as progress:
        task = progress.add_task("no failure", total=len(seeds))
        for done, outcome in enumerate(outcomes, 1):
            results.add(outcome)
            failures += outcome.invariant is not None
            cpu_s += outcome.cpu_s
            text = f"{failures} failures, {done / cpu_s:.1f} seeds a second and core"
            progress.update(task, advance=1, description=text)


def _examined(test: ApplicationTest, failed: Iterable[SeedOutcome], shrinks: bool, console: Console) -> list[Failure]:
    """Shrink some seeds of each violated invariant; return one failure for each set of faults that causes it."""
    by_invariant: dict[str, list[SeedOutcome]] = defaultdict(list)
    for outcome in failed:
        by_invariant[outcome.invariant or ""].append(outcome)
    distinct: dict[tuple[str | None, tuple[str, ...]], Failure] = {}
    for outcomes in by_invariant.values():
        for outcome in outcomes[:EXAMINED]:
            with console.status(f"shrinking the schedule of seed {outcome.seed}"):
                failure = test.examine(test.draw(outcome.seed), shrinks=shrinks)
            if failure is None:
                console.print(f"seed {outcome.seed} failed before and passes now: see docs/chaos/index.md")
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

"""`broker-sim chaos ... -- COMMAND`: a command of any language, beside a cluster that has faults."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from broker_sim.chaos.command import CommandRun
from broker_sim.chaos.drawing import MOST_FAULTS, draw_schedule
from broker_sim.chaos.faults.action import ScheduleError
from broker_sim.chaos.faults.kinds import kinds_beside_a_command, weights_beside_a_command
from broker_sim.chaos.schedule import DEFAULT_DURATION_MS, Schedule
from broker_sim.cli.logs import logs_on_stderr
from broker_sim.cli.parameters import check_topics, parse_configs
from broker_sim.cluster.cluster import new_event_loop
from broker_sim.errors import ApiError, ConfigError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOT_FOUND = 127
NOT_EXECUTABLE = 126


@click.command("chaos", options_metavar="[OPTIONS] --")
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the schedule.")
@click.option("--duration", type=click.FloatRange(1), default=60, show_default=True,
              help="Seconds of faults.")  # fmt: skip
@click.option("--faults", metavar="KIND,...", help=f"Only these kinds of {', '.join(kinds_beside_a_command())}.")
@click.option("--brokers", type=click.IntRange(1), default=3, show_default=True, help="Brokers of the cluster.")
@click.option(
    "--topic", "topics", multiple=True, callback=check_topics, metavar="NAME:PARTITIONS:RF:KEY=VALUE",
    help="Create a topic; all but the name may be left out.",
)  # fmt: skip
@click.option(
    "--config", "configs", multiple=True, callback=parse_configs, metavar="KEY=VALUE",
    help="A configuration of all brokers, under Kafka's name.",
)  # fmt: skip
@click.option(
    "--begin-with",
    metavar="TEXT",
    default="",
    help="Faults begin with the first client whose id has this in it, instead of any client.",
)
@click.option(
    "--schedule",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run this schedule instead of drawing one from the seed.",
)
@click.option(
    "--write-schedule",
    "written",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the schedule to this file.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write exit code, schedule and time line to this file.",
)
def command(
    *,
    words: Sequence[str],
    seed: int,
    duration: float,
    faults: str | None,
    brokers: int,
    topics: Sequence[str],
    configs: Mapping[str, str],
    begin_with: str,
    file: Path | None,
    written: Path | None,
    json_file: Path | None,
) -> None:
    """Run a command while the brokers of a cluster fail, in real time.

    The command finds the cluster in KAFKA_BOOTSTRAP_SERVERS, and its control port in
    BROKER_SIM_CONTROL. Faults begin with the first request of a client and end after --duration. The
    time line is on stderr; the exit code is that of the command. `freeze` stops the command itself, with
    all that it has started, and happens only if it is named.
    """
    if shutil.which(words[0]) is None:
        raise _NotFoundError(f"{words[0]}: there is no such command")
    duration_ms = round(duration * 1_000)
    try:
        if file is None:
            schedule = draw_schedule(
                seed,
                faults=weights_beside_a_command(None if faults is None else faults.split(",")),
                brokers=brokers,
                workers=1,
                duration_ms=duration_ms,
                most_faults=max(MOST_FAULTS, MOST_FAULTS * duration_ms // DEFAULT_DURATION_MS),
            )
        else:
            schedule = Schedule.parse(file.read_text())
        if written is not None:
            written.write_text(f"{schedule}\n")
        run = CommandRun(words, schedule, topics=topics, configs=configs, begin_with=begin_with)
        with logs_on_stderr("error"), asyncio.Runner(loop_factory=new_event_loop) as runner:
            outcome = runner.run(run.run())
    except (ConfigError, ApiError, ScheduleError) as error:
        raise click.UsageError(str(error)) from None
    except MissingExtraError as error:
        raise click.ClickException(str(error)) from None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--faults") from None
    except OSError as error:
        raise _CannotStartError(f"{error.filename or words[0]}: {error.strerror}") from None
    click.echo(f"\n{outcome}", err=True)
    if json_file is not None:
        json_file.write_text(json.dumps(outcome.to_json(), indent=1))
    sys.exit(outcome.exit_code)


class _CannotStartError(click.ClickException):
    """The command cannot be started; the exit code is that of a shell."""

    exit_code = NOT_EXECUTABLE


class _NotFoundError(_CannotStartError):
    """There is no such command."""

    exit_code = NOT_FOUND

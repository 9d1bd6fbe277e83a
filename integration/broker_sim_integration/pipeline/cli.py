"""The command `broker-sim-pipeline JOB`, also run by spark-submit.

Jobs are imported when they are called: without pyspark the output is one line with the remedy.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker_sim.cli.standard_streams import Program
from broker_sim_integration.pipeline.errors import PipelineError, extras_or_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


CHAOS: Final = "chaos"


class _Jobs(Program):
    """The jobs. `chaos` is imported only when it is used, because that takes half a second."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all jobs."""
        return sorted({*super().list_commands(context), CHAOS})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the command of a job, or None for an unknown name."""
        if name == CHAOS:
            import_module(".chaos_command", __package__)
        return super().get_command(context, name)


@click.group("broker-sim-pipeline", cls=_Jobs)
def main() -> None:
    """Turn traces of delayed operations into statistics, on Spark.

    all runs, in one session: ingest, then lifecycle, then latency and occupancy; parity, which needs
    ingested observations; and report, which shows the tables that exist. chaos, sweep and stream need
    no other job.
    """


def _parse_conf(
    context: click.Context,  # noqa: ARG001 - click's signature
    parameter: click.Parameter,  # noqa: ARG001 - the same
    values: tuple[str, ...],
) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    wrong = [key for key, equals, _ in pairs if not (key and equals)]
    if wrong:
        raise click.BadParameter(f"{wrong[0]}: write key=value")
    return {key: value for key, _, value in pairs}


_SESSION_OPTIONS: Final = (
    click.option("--master", help="Spark's master  [default: spark-submit's, else local[*]]."),
    click.option("--conf", multiple=True, callback=_parse_conf, metavar="KEY=VALUE", help="Spark configuration."),
    click.option("--output", required=True, help="Directory of the tables to write."),
    click.option("--verbose", is_flag=True, help="Also show the output of Spark."),
)
_TABLES: Final = click.option("--input", "directory", required=True, help="Directory of the tables to read.")
_FILES: Final = click.option(
    "--input",
    "inputs",
    multiple=True,
    required=True,
    help="Trace or observation files (*.gz, *.parquet too), directories or patterns; may be repeated.",
)
_BUCKET: Final = click.option("--bucket-ms", type=click.IntRange(1), default=1_000, show_default=True)


def _reads_traces(options: Mapping[str, Any]) -> bool:
    """Whether a job's work depends only on the size of its input; a sweep has work of its own."""
    return ("inputs" in options or "directory" in options) and not options.get("path")


def job(
    name: str, *, module_name: str = "", kafka: bool = False, writes_tables: bool = True
) -> Callable[[Callable[..., str]], click.Command]:
    """Return a decorator that turns a function of (module, spark, options) into a command with a session around it."""

    def decorate(function: Callable[..., str]) -> click.Command:
        @wraps(function)
        def run(*, master: str | None, conf: dict[str, str], verbose: bool, **options: Any) -> None:
            try:
                with extras_or_error():
                    session = import_module(".spark.session", __package__)
                    module = import_module(f".{module_name or f'jobs.{name}'}", __package__)
                paths = options.get("inputs") or [options["directory"]] if _reads_traces(options) else ()
                small = bool(paths) and session.are_small(paths)
                opened = session.spark_session(
                    f"broker-sim {name}",
                    master=master,
                    conf=conf,
                    kafka=kafka,
                    quiet=not verbose,
                    small=small,
                    writes_archive=name == "all",
                )
                with opened as spark:
                    if writes_tables:
                        driver = import_module(".spark.driver", __package__)
                        driver.make_directory(spark, options["output"])
                    click.echo(f"{name}: {function(module, spark, **options)}")
            except PipelineError as error:
                raise click.ClickException(str(error)) from error

        for option in reversed(_SESSION_OPTIONS):
            run = option(run)
        return main.command(name)(run)

    return decorate


@job("all", module_name="all_jobs")
@_FILES
@_BUCKET
@click.option(
    "--sweep",
    "path",
    type=click.Path(exists=True, dir_okay=False),
    help="Also run the job sweep, with the settings in this file.",
)
def run_all(module: Any, spark: Any, inputs: tuple[str, ...], output: str, bucket_ms: int, path: str | None) -> str:
    """Run every job on a trace in one session, up to the report."""
    plan = None
    if path:
        jobs = import_module(".jobs.sweep", __package__)
        plan = jobs.SweepPlan(jobs.read_specification(path))
    return str(module.run(spark, inputs, output, bucket_ms, plan))


@job("ingest")
@_FILES
def ingest(module: Any, spark: Any, inputs: tuple[str, ...], output: str) -> str:
    """Convert lines into typed tables: events, observations, quarantine."""
    return str(module.run(spark, inputs, output))


@job("lifecycle")
@_TABLES
def lifecycle(module: Any, spark: Any, directory: str, output: str) -> str:
    """Write one row per delayed operation, and list the broken ones."""
    return str(module.run(spark, directory, output))


@job("latency")
@_TABLES
def latency(module: Any, spark: Any, directory: str, output: str) -> str:
    """Compute how long operations waited and how late they expired."""
    return str(module.run(spark, directory, output))


@job("occupancy")
@_TABLES
@_BUCKET
def occupancy(module: Any, spark: Any, directory: str, output: str, bucket_ms: int) -> str:
    """Compute the number of parked operations over time, per purgatory and key."""
    return str(module.run(spark, directory, output, bucket_ms))


@job("parity")
@_TABLES
def parity(module: Any, spark: Any, directory: str, output: str) -> str:
    """Compare the simulator's observations with those of a real Kafka."""
    return str(module.run(spark, directory, output))


@job("stream", kafka=True)
@click.option("--input", "bootstrap_servers", required=True, help="The cluster: HOST:PORT,...")
@click.option("--topic", required=True, help="The topic of `broker-sim run --trace-topic`.")
@click.option("--window", default="1 minute", show_default=True)
@click.option("--watermark", default="30 seconds", show_default=True, help="Maximum lateness of an event.")
@click.option("--trigger", default="5 seconds", show_default=True, help="Interval between batches.")
@click.option("--max-offsets-per-trigger", type=click.IntRange(1), help="Maximum number of records per batch.")
@click.option("--available-now", is_flag=True, help="Process the present records of the topic, then end.")
@click.option("--for", "for_s", type=click.IntRange(1), help="Duration in seconds  [default: until ctrl-C].")
def stream(module: Any, spark: Any, output: str, for_s: int | None, **settings: Any) -> str:
    """Compute latency and occupancy live, from a topic of trace events."""
    return str(module.run(spark, module.StreamSettings(**settings), output, for_s))


@job("sweep")
@click.option(
    "--input",
    "path",
    type=click.Path(exists=True, dir_okay=False),
    help="JSON from settings to lists of values (docs/operate/pipeline.md); a small grid without it.",
)
@click.option("--sample", "sample_size", type=click.IntRange(1), help="Number of settings to draw at random.")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Number of seeds per setting.")
@click.option("--seed", type=int, default=0, show_default=True, help="First seed.")
@click.option("--tasks", type=click.IntRange(1), help="Number of Spark tasks for the runs.")
def sweep(module: Any, spark: Any, output: str, path: str | None, tasks: int | None, **plan: Any) -> str:
    """Simulate many settings in virtual time, to find how often acks=all times out."""
    specification = module.read_specification(path) if path else module.DEFAULT_SPECIFICATION
    return str(module.run(spark, module.SweepPlan(specification, **plan), output, tasks))


@job("report", module_name="report.report", writes_tables=False)
@_TABLES
def report(module: Any, spark: Any, directory: str, output: str) -> str:
    """Draw the tables as one HTML page (--output FILE.html or a directory)."""
    return str(module.run(spark, directory, output))


@main.command("archive")
@click.option("--output", required=True, type=click.Path(file_okay=False, path_type=Path))
def archive(output: Path) -> None:
    """Write the code as an archive, and the program that spark-submit runs with it."""
    size = import_module(".spark.archive", __package__).write_archive(output)
    click.echo("spark-submit --py-files {} {} JOB ...".format(*size))

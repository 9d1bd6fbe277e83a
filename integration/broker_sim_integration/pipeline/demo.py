"""`make pipeline`: all jobs on real input, from a running cluster to the report.

A simulated cluster is traced under a mixed load; the live stream reads the trace from the cluster's own
topic; then all jobs run, also on the observations of a comparison, and write report.html.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from broker_sim_integration.pipeline.errors import PipelineError, extras_or_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARED: Final = (
    "acks_1_is_answered_at_once",
    "acks_all_is_answered_when_all_replicas_have_it",
    "acks_all_times_out_while_a_frozen_follower_is_in_the_isr",
    "an_empty_partition_answers_at_max_wait",
    "a_produce_wakes_a_parked_fetch",
)
COMPARE_TIMEOUT_S: Final = 300
REFERENCE_TROUBLE: Final = 2


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="out/pipeline")
@click.option("--events", type=click.IntRange(1_000), default=100_000, show_default=True)
@click.option("--master", default="local[2]", show_default=True)
@click.option(
    "--observations",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="observations.jsonl of a comparison  [default: of a short new one].",
)
@click.option(
    "--reference",
    default="recorded",
    show_default=True,
    help="The real Kafka of the short comparison: auto starts one, which takes a minute.",
)
@click.option("--verbose", is_flag=True, help="Also show the output of Spark.")
def main(out: Path, events: int, master: str, observations: Path | None, reference: str, verbose: bool) -> None:
    """Trace a cluster under load, run every job of the pipeline, and draw the report."""
    try:
        _demonstrate(out, events, master, observations or reference, quiet=not verbose)
    except PipelineError as error:
        raise click.ClickException(str(error)) from error


def _demonstrate(out: Path, events: int, master: str, compared: Path | str, *, quiet: bool) -> None:
    """Run all steps; `compared` is a file with observations, or the reference for a new comparison."""
    with extras_or_error():
        from broker_sim_integration.pipeline.load import drive, running_cluster  # noqa: PLC0415 - needs an extra
        from broker_sim_integration.pipeline.spark import session  # noqa: PLC0415 - needs an extra
    from broker_sim_integration.pipeline import all_jobs  # noqa: PLC0415 - needs the same
    from broker_sim_integration.pipeline.jobs import sweep  # noqa: PLC0415 - the same

    session.require_java()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    observations = compared if isinstance(compared, Path) else _compare(out / "compare", compared)
    trace = out / "trace.parquet"
    opened = session.spark_session("broker-sim pipeline", master=master, kafka=True, quiet=quiet)
    with opened as spark:
        with running_cluster(trace) as cluster:
            drive(cluster, events, click.echo)
            _stream(spark, cluster.bootstrap_servers, out)
        inputs = [str(path) for path in (trace, observations) if path is not None]
        plan = sweep.SweepPlan(sweep.DEFAULT_SPECIFICATION)
        click.echo(f"all jobs in {all_jobs.run(spark, inputs, str(out), sweep_plan=plan)}")


def _compare(directory: Path, reference: str) -> Path | None:
    """Run a few scenarios on both sides; return None without a real Kafka, and then there is no parity."""
    package = str(__package__).partition(".")[0]
    command = [sys.executable, "-c", f"from {package}.cli import main; main()"]
    command += ["--reference", reference, "--out", str(directory)]
    if reference != "recorded":
        command += ["--repeat", "5"]  # every response of a recording is the same, so it counts once
    for pattern in COMPARED:
        command += ["--scenario", pattern]
    click.echo(f"comparing a few scenarios with a real Kafka ({reference})")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - our own
        try:
            code = process.wait(COMPARE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # SIGINT and not SIGKILL, because the comparison has brokers to stop.
            process.send_signal(signal.SIGINT)
            code = REFERENCE_TROUBLE
    path = directory / "observations.jsonl"
    if code >= REFERENCE_TROUBLE or not path.exists():
        click.echo("there is no real Kafka to compare with, so the report has no parity")
        return None
    return path


def _stream(spark: SparkSession, bootstrap_servers: str, out: Path) -> None:
    from broker_sim_integration.pipeline import all_jobs  # noqa: PLC0415 - needs the extra
    from broker_sim_integration.pipeline.jobs import stream  # noqa: PLC0415 - needs the extra
    from broker_sim_integration.pipeline.load import TRACE_TOPIC  # noqa: PLC0415 - the same

    settings = stream.StreamSettings(
        bootstrap_servers, TRACE_TOPIC, window="5 seconds", watermark="5 seconds", available_now=True
    )
    all_jobs.step("stream", lambda: stream.run(spark, settings, str(out)))


if __name__ == "__main__":
    main()

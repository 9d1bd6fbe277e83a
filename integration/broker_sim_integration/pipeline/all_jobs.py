"""All jobs for a trace, one after the other in one session, so that Spark starts only once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.pipeline.jobs import ingest, latency, lifecycle, occupancy, parity
from broker_sim_integration.pipeline.report import report
from broker_sim_integration.pipeline.spark import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from broker_sim_integration.pipeline.jobs.sweep import SweepPlan

BUCKET_MS: Final = 1_000


def step(name: str, work: Callable[[], Any]) -> None:
    """Run a step of a longer run: print its name before, and its result and duration after."""
    click.echo(f"{name}: ", nl=False)
    started_ms = now_ms()
    try:
        result = work()
    except BaseException:
        click.echo()
        raise
    click.echo(f"{result} ({(now_ms() - started_ms) / 1000:.1f} s)")


def run(
    spark: SparkSession,
    inputs: Sequence[str],
    output: str,
    bucket_ms: int = BUCKET_MS,
    sweep_plan: SweepPlan | None = None,
) -> str:
    """Run every job on the inputs, with a line for each; return the total duration as text.

    Parity runs if there are observations, a sweep if there is a plan for it.
    """
    started_ms = now_ms()
    step("ingest", lambda: ingest.run(spark, inputs, output))
    step("lifecycle", lambda: lifecycle.run(spark, output, output))
    step("latency", lambda: latency.run(spark, output, output))
    step("occupancy", lambda: occupancy.run(spark, output, output, bucket_ms))
    if tables.read_or_none(spark, output, "observations") is not None:
        step("parity", lambda: parity.run(spark, output, output))
    if sweep_plan is not None:
        from broker_sim_integration.pipeline.jobs import sweep  # noqa: PLC0415 - it imports the simulator

        step("sweep", lambda: sweep.run(spark, sweep_plan, output))
    step("report", lambda: report.run(spark, output, output))
    return f"{(now_ms() - started_ms) / 1000:.1f} s"

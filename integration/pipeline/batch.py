"""All batch jobs in one session: its JVM starts once, and is warm from the second job on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from integration.clients.stopwatch import now_ms
from integration.pipeline.jobs import ingest, latency, lifecycle, occupancy, parity, sweep
from integration.pipeline.report import report
from integration.pipeline.spark import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from integration.pipeline.jobs.sweep import SweepPlan

__all__ = ["run", "step"]


def run(
    spark: SparkSession,
    inputs: Sequence[str],
    output: str,
    say: Callable[[str], Any],
    plan: SweepPlan | None = None,
) -> int:
    """Run every job, with a line to `say` after each, and return how many there were.

    Jobs whose table is missing are left out: all but ingest and report where there are no events,
    parity where there are no observations. A `plan` is swept too. The page is
    `report.html` under `output`, beside the tables.
    """
    done = [step("ingest", say, lambda: ingest.run(spark, inputs, output))]
    if tables.read_or_none(spark, output, "events") is not None:
        done += [
            step("lifecycle", say, lambda: lifecycle.run(spark, output, output)),
            step("latency", say, lambda: latency.run(spark, output, output)),
            step("occupancy", say, lambda: occupancy.run(spark, output, output)),
        ]
    if tables.read_or_none(spark, output, "observations") is not None:
        done.append(step("parity", say, lambda: parity.run(spark, output, output)))
    if plan is not None:
        done.append(step("sweep", say, lambda: sweep.run(spark, plan, output)))
    done.append(step("report", say, lambda: report.run(spark, output, output)))
    return len(done)


def step(name: str, say: Callable[[str], Any], job: Callable[[], object]) -> str:
    """Run one job, say what it answers and how many seconds it took, and return its name."""
    started_ms = now_ms()
    answer = job()
    say(f"{name}: {answer} ({(now_ms() - started_ms) / 1000:.1f} s)")
    return name

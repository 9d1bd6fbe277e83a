"""Latency: how long operations waited, and how late their expiry was.

By side, purgatory, outcome, API and minute (in which they ended, UTC), and once more with
`minute` null over all minutes. Percentiles are exact, with linear interpolation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf

from integration.pipeline.spark import tables

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["PERCENTILES", "latency", "percentile_columns", "run", "waiting_times"]

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
GROUP: Final = ("side", "purgatory", "outcome", "api")
MINUTE_MS: Final = 60_000


def latency(lives: DataFrame) -> DataFrame:
    """Return count, percentiles and maximum of `waited_ms` and `lateness_ms` per group."""
    times = waiting_times(lives)
    total = [*GROUP, "waited_ms", "lateness_ms", "times"]
    # One row per minute and value: the totals are computed from these few rows, not from all.
    both = times.unionByName(times.select(sf.lit(None).cast("timestamp").alias("minute"), *total))
    return both.groupBy(*GROUP, "minute").agg(
        sf.sum("times").alias("operations"),
        *percentile_columns("waited_ms"),
        *percentile_columns("lateness_ms"),
    )


def waiting_times(lives: DataFrame) -> DataFrame:
    """Return how often (`times`) each pair of waited and lateness occurred in each minute."""
    ended = lives.where(sf.col("outcome") != "open")
    minute_ms = sf.col("ended_at_ms") - sf.col("ended_at_ms") % MINUTE_MS
    return ended.groupBy(
        *GROUP, sf.timestamp_millis(minute_ms).alias("minute"), "waited_ms", "lateness_ms"
    ).agg(sf.count("*").alias("times"))


def percentile_columns(value: str) -> list[Column]:
    """Return the percentiles and the maximum of a column that occurs `times` times."""
    return [
        *[
            sf.percentile(value, share, sf.col("times")).alias(
                f"{value.removesuffix('_ms')}_{name}_ms"
            )
            for name, share in PERCENTILES.items()
        ],
        sf.max(value).alias(f"{value.removesuffix('_ms')}_max_ms"),
    ]


def run(spark: SparkSession, directory: str, output: str) -> str:
    """Write `latency` from the table `lifecycles`."""
    found = tables.overwrite(
        latency(tables.read(spark, directory, "lifecycles")), output, "latency"
    )
    return f"{found.count()} groups"

"""Latency: how long operations waited, and how late they expired.

By side, purgatory, outcome, API and minute of the end (UTC), and once more over all minutes, with `minute` null.
Percentiles are interpolated linearly. Times are whole milliseconds, and their frequencies are counted first, so
a task's memory for a group is bounded by the number of possible times, not by the operations: times below
`EXACT_MS` (131 s) are exact, longer ones lose less than a 65 536th, and a group whose waits last up to a day
has at most 800 000 different ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf

from broker_sim_integration.pipeline.spark import tables
from broker_sim_integration.pipeline.spark.counting import Counted, counting

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
GROUP: Final = ("side", "purgatory", "outcome", "api")
MINUTE_MS: Final = 60_000
TIMES: Final = ("waited_ms", "lateness_ms")
EXACT_BITS: Final = 17
EXACT_MS: Final = 1 << EXACT_BITS


def latency(lives: DataFrame) -> DataFrame:
    """Return count, percentiles and maximum of `waited_ms` and `lateness_ms` per group."""
    times = waiting_times(lives)
    total = [name for name in times.columns if name != "minute"]
    # One row per minute and value: the totals are computed from these few rows, not from all rows.
    both = times.unionByName(times.select(sf.lit(None).cast("timestamp").alias("minute"), *total))
    return both.groupBy(*GROUP, "minute").agg(
        sf.sum("times").alias("operations"), *[column for name in TIMES for column in percentile_columns(name)]
    )


def waiting_times(lives: DataFrame) -> DataFrame:
    """Return how often (`times`) each pair of waited and lateness occurred in each minute.

    The pairs are rounded by `rounded`; their exact maxima are in further columns.
    """
    ended = lives.where(sf.col("outcome") != "open")
    minute_ms = sf.col("ended_at_ms") - sf.col("ended_at_ms") % MINUTE_MS
    return ended.groupBy(
        *GROUP, sf.timestamp_millis(minute_ms).alias("minute"), *[rounded(sf.col(name)).alias(name) for name in TIMES]
    ).agg(sf.count("*").alias("times"), *[sf.max(name).alias(_most(name)) for name in TIMES])


def rounded(time_ms: Column) -> Column:
    """Return a time with only its first `EXACT_BITS` bits: below `EXACT_MS` it is unchanged."""
    lost_bits = sf.floor(sf.log2(time_ms)) - (EXACT_BITS - 1)
    step = sf.pow(sf.lit(2.0), lost_bits).cast("bigint")
    return sf.when(time_ms < EXACT_MS, time_ms).otherwise(time_ms - time_ms % step)


def _most(name: str) -> str:
    return f"{name.removesuffix('_ms')}_max_ms"


def percentile_columns(value: str) -> list[Column]:
    """Return the percentiles of a column whose values occur `times` times, and its maximum."""
    return [
        *[
            sf.percentile(value, share, sf.col("times")).alias(f"{value.removesuffix('_ms')}_{name}_ms")
            for name, share in PERCENTILES.items()
        ],
        sf.max(_most(value)).alias(_most(value)),
    ]


def run(spark: SparkSession, directory: str, output: str) -> str:
    """Write `latency` from the table `lifecycles`."""
    with counting(spark):
        groups = Counted(latency(tables.read(spark, directory, "lifecycles")), {"rows": sf.count("*")})
        tables.overwrite(groups.frame, output, "latency")
        count = groups.counts()["rows"]
    return f"{count} groups"

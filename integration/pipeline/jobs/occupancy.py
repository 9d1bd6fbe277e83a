"""Occupancy: how many operations were parked, over time, per purgatory and per key.

An operation counts from the event `parked` to its end. What happens within one millisecond counts
as one change. Time is cut into buckets:

    time     0   1   2   3   4   5   6   7   8   9      bucket of 5 ms   opening  peak  mean
    change  +1      +1      -2              +1                  0           0       2    1.2
    level    1   1   2   2   0   0   0   0   1   1              5           0       1    0.4

The running sum is computed within each bucket and then over the buckets, so that no single task has
to sort all events of a purgatory. Buckets in which nothing changed have no row: their level is the
`closing` of the row before them. A row with `key` null is the whole purgatory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf
from pyspark.sql import Window

from integration.pipeline.jobs.lifecycle import RUN
from integration.pipeline.spark import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BUCKET_MS", "SERIES", "changes", "occupancy", "occupancy_summary", "run"]

BUCKET_MS: Final = 1_000
HOTTEST: Final = 1_000
"""How many keys of a purgatory get a rank."""
SHARES: Final = 64
SERIES: Final = (*RUN, "broker", "purgatory", "key")
KEY_FIRST: Final = ("key", "broker", "purgatory", *RUN)
"""A series in the order to sort by: what differs most comes first."""


def changes(lives: DataFrame, bucket_ms: int = BUCKET_MS) -> DataFrame:
    """Return by how much the number of parked operations of each series changed, and when.

    What changed in one bucket is in one task, as everything that follows needs it.
    """
    start = sf.col("at_ms") - sf.col("at_ms") % bucket_ms
    parked = lives.where(sf.col("parked_at_ms").isNotNull())
    whole = sf.array(sf.lit(None).cast("string"))
    steps = sf.array(
        sf.struct(sf.col("parked_at_ms").alias("at_ms"), sf.lit(1).alias("change")),
        sf.struct(sf.col("ended_at_ms").alias("at_ms"), sf.lit(-1).alias("change")),
    )
    return (
        parked.select(
            *RUN,
            "broker",
            "purgatory",
            sf.explode(sf.concat(whole, sf.array_distinct("keys"))).alias("key"),
            steps.alias("steps"),
        )
        .select(*SERIES, sf.inline("steps"))
        .where(sf.col("at_ms").isNotNull())
        .withColumn("bucket_start_ms", start)
        .repartition("bucket_start_ms", *SERIES)
        .groupBy("at_ms", "bucket_start_ms", *SERIES)
        .agg(sf.sum("change").alias("change"))
    )


def occupancy(lives: DataFrame, bucket_ms: int = BUCKET_MS) -> DataFrame:
    """Return opening, closing, peak and time-weighted mean of each series and bucket.

    `area_ms` is the mean's numerator: the sum of all parked milliseconds in the bucket, up to the
    run's last step.
    """
    run_end = lives.groupBy(*RUN).agg(
        sf.max(sf.greatest("tried_at_ms", "parked_at_ms", "ended_at_ms")).alias("run_end_ms")
    )
    stepped = (
        changes(lives, bucket_ms)
        .join(sf.broadcast(run_end), [*RUN], "inner")
        .withColumn("end_ms", sf.least(sf.col("bucket_start_ms") + bucket_ms, "run_end_ms"))
    )
    within = Window.partitionBy("bucket_start_ms", *KEY_FIRST).orderBy("at_ms")
    until_now = within.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    next_ms = sf.coalesce(sf.lead("at_ms").over(within), "end_ms")
    buckets = (
        stepped.withColumn("risen", sf.sum("change").over(until_now))
        .withColumn("lasted_ms", next_ms - sf.col("at_ms"))
        .groupBy("bucket_start_ms", *KEY_FIRST)
        .agg(
            sf.sum("change").alias("net"),
            sf.max("risen").alias("highest"),
            sf.sum(sf.col("risen") * sf.col("lasted_ms")).alias("risen_area"),
            sf.min("at_ms").alias("first_ms"),
            sf.max("end_ms").alias("end_ms"),
        )
    )
    before = (
        Window.partitionBy(*KEY_FIRST)
        .orderBy("bucket_start_ms")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    opening = sf.coalesce(sf.sum("net").over(before), sf.lit(0))
    lasted_ms = sf.col("end_ms") - sf.col("bucket_start_ms")
    held = sf.when(sf.col("first_ms") > sf.col("bucket_start_ms"), 0)
    return (
        buckets.withColumn("opening", opening)
        .withColumn("area_ms", sf.col("opening") * lasted_ms + sf.col("risen_area"))
        .select(
            *SERIES,
            sf.timestamp_millis("bucket_start_ms").alias("bucket"),
            "bucket_start_ms",
            "opening",
            (sf.col("opening") + sf.col("net")).alias("closing"),
            (sf.col("opening") + sf.greatest("highest", held)).alias("peak"),
            (sf.col("area_ms") / bucket_ms).alias("mean"),
            "area_ms",
        )
    )


def occupancy_summary(
    buckets: DataFrame, lives: DataFrame, bucket_ms: int = BUCKET_MS
) -> DataFrame:
    """Return peak and mean of each series over its whole run, and the rank of keys by heat.

    The mean is over the run's time, so the means of keys add up to that of their purgatory where
    every operation has one key. `heat` 1 is the key with the most parked milliseconds among those
    of its side and purgatory; null for a whole purgatory and for keys behind the first `HOTTEST`.
    """
    spans = lives.groupBy(*RUN).agg(
        sf.min(sf.least("tried_at_ms", "parked_at_ms")).alias("from_ms"),
        sf.max(sf.greatest("tried_at_ms", "parked_at_ms", "ended_at_ms")).alias("to_ms"),
    )
    in_time = Window.partitionBy(*KEY_FIRST).orderBy("bucket_start_ms")
    bucket_end_ms = sf.col("bucket_start_ms") + bucket_ms
    next_ms = sf.coalesce(sf.lead("bucket_start_ms").over(in_time), "to_ms")
    quiet_ms = sf.greatest(next_ms - bucket_end_ms, sf.lit(0))
    summary = (
        buckets.join(sf.broadcast(spans), [*RUN], "inner")
        .withColumn("area_ms", sf.col("area_ms") + sf.col("closing") * quiet_ms)
        .groupBy(*SERIES, "from_ms", "to_ms")
        .agg(sf.max("peak").alias("peak"), sf.sum("area_ms").alias("parked_ms"))
    )
    lasted_ms = sf.nullif(sf.col("to_ms") - sf.col("from_ms"), sf.lit(0))
    return (
        _with_heat(summary)
        .withColumn("mean", sf.col("parked_ms") / lasted_ms)
        .select(*SERIES, "peak", "mean", "parked_ms", "heat")
    )


def _with_heat(summary: DataFrame) -> DataFrame:
    """Add the rank of the hottest keys of each side and purgatory.

    Keys are dealt out first, and only the hottest of each share go on. So a task ranks its share of
    the keys, and the last one at most `SHARES * HOTTEST`, however many there are.
    """
    hottest_first = (sf.desc("parked_ms"), "run_id", "broker", "key")
    share = sf.pmod(sf.xxhash64(*SERIES), sf.lit(SHARES))
    in_share = Window.partitionBy("side", "purgatory", "share").orderBy(*hottest_first)
    by_heat = Window.partitionBy("side", "purgatory").orderBy(*hottest_first)
    ranked = (
        summary.where(sf.col("key").isNotNull())
        .select(*SERIES, "parked_ms", share.alias("share"))
        .withColumn("heat", sf.row_number().over(in_share))
        .where(sf.col("heat") <= HOTTEST)
        .withColumn("heat", sf.row_number().over(by_heat))
        .where(sf.col("heat") <= HOTTEST)
        .select(*SERIES, "heat")
    )
    return summary.join(sf.broadcast(ranked), [*SERIES], "left")


def run(spark: SparkSession, directory: str, output: str, bucket_ms: int = BUCKET_MS) -> str:
    """Write `occupancy` and `occupancy_summary` from the table `lifecycles`."""
    lives = tables.read(spark, directory, "lifecycles")
    buckets = tables.overwrite(occupancy(lives, bucket_ms), output, "occupancy")
    summary = tables.overwrite(
        occupancy_summary(buckets, lives, bucket_ms), output, "occupancy_summary"
    )
    return f"{buckets.count()} buckets of {bucket_ms} ms in {summary.count()} series"

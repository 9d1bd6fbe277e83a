"""Occupancy: the number of parked operations over time, per purgatory and per key.

An operation counts from the event `parked` to its end. All changes within one millisecond count as one. Time is
cut into buckets:

    time     0   1   2   3   4   5   6   7   8   9      bucket of 5 ms   opening  peak  mean
    change  +1      +1      -2              +1                  0           0       2    1.2
    level    1   1   2   2   0   0   0   0   1   1              5           0       1    0.4

The running sum is computed within each bucket (`levels`, with whole columns in the executors' Python) and then over
the buckets, so that no single task has to sort all events of a purgatory. Buckets without a change have no row:
their level is the `closing` of the row before them. A row with `key` null is the whole purgatory.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf
from pyspark.sql import Window
from pyspark.sql.types import LongType, StringType, StructField, StructType

from broker_sim_integration.pipeline.jobs.levels import LEVELS, PLACE, levels_of_batches
from broker_sim_integration.pipeline.jobs.lifecycle import RUN
from broker_sim_integration.pipeline.spark import tables
from broker_sim_integration.pipeline.spark.archive import ship_code
from broker_sim_integration.pipeline.spark.counting import Counted, counting
from broker_sim_integration.pipeline.spark.driver import needs_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKET_MS: Final = 1_000
HOTTEST: Final = 1_000
"""Number of keys of a purgatory that get a rank."""
SHARES: Final = 64
PURGATORY: Final = (*RUN, "broker", "purgatory")
SERIES: Final = (*PURGATORY, "key")
KEY_FIRST: Final = ("key", "broker", "purgatory", *RUN)
"""A series in the order for sorting: the columns that differ most come first."""


def dealt_out(lives: DataFrame, bucket_ms: int = BUCKET_MS) -> DataFrame:
    """Return the parked operations, once for each bucket in which they began or ended.

    All rows of a purgatory in one bucket are in one task, which the following steps need, and a task gets one
    bucket after the other, so that it need not hold all its rows.
    """
    began, ended = (sf.col(name) - sf.col(name) % bucket_ms for name in ("parked_at_ms", "ended_at_ms"))
    buckets = sf.when(began == ended, sf.array(began)).otherwise(sf.array(began, ended))
    return (
        lives.where(sf.col("parked_at_ms").isNotNull())
        .select(
            *PURGATORY,
            sf.explode(buckets).alias("bucket_start_ms"),
            sf.array_distinct("keys").alias("keys"),
            "parked_at_ms",
            "ended_at_ms",
        )
        .where(sf.col("bucket_start_ms").isNotNull())
        .repartition(*PLACE)
        .sortWithinPartitions("bucket_start_ms")
    )


def occupancy(lives: DataFrame, bucket_ms: int = BUCKET_MS) -> DataFrame:
    """Return opening, closing, peak and time-weighted mean of each series and bucket.

    `area_ms` is the mean's numerator: the sum of all parked milliseconds in the bucket, up to the
    run's last step.
    """
    schema = StructType(
        [
            *lives.select(*PURGATORY).schema,
            StructField("bucket_start_ms", LongType()),
            StructField("key", StringType()),
            *[StructField(name, LongType()) for name in LEVELS],
        ]
    )
    risen = dealt_out(lives, bucket_ms).mapInArrow(partial(levels_of_batches, bucket_ms=bucket_ms), schema)
    before = Window.partitionBy(*KEY_FIRST).orderBy("bucket_start_ms").rowsBetween(Window.unboundedPreceding, -1)
    opening = sf.coalesce(sf.sum("net").over(before), sf.lit(0))
    after_run_ms = sf.greatest(sf.col("bucket_start_ms") + bucket_ms - sf.col("to_ms"), sf.lit(0))
    area_ms = sf.col("opening") * bucket_ms + sf.col("risen_area") - sf.col("closing") * after_run_ms
    held = sf.when(sf.col("first_ms") > sf.col("bucket_start_ms"), 0)
    return (
        risen.join(sf.broadcast(_spans(lives)), [*RUN], "inner")
        .withColumn("opening", opening)
        .withColumn("closing", sf.col("opening") + sf.col("net"))
        .withColumn("area_ms", area_ms)
        .select(
            *SERIES,
            sf.timestamp_millis("bucket_start_ms").alias("bucket"),
            "bucket_start_ms",
            "opening",
            "closing",
            (sf.col("opening") + sf.greatest("highest", held)).alias("peak"),
            (sf.col("area_ms") / bucket_ms).alias("mean"),
            "area_ms",
        )
    )


def _spans(lives: DataFrame) -> DataFrame:
    """Return the times of the first and the last step of each run's operations."""
    return lives.groupBy(*RUN).agg(
        sf.min(sf.least("tried_at_ms", "parked_at_ms")).alias("from_ms"),
        sf.max(sf.greatest("tried_at_ms", "parked_at_ms", "ended_at_ms")).alias("to_ms"),
    )


def occupancy_summary(buckets: DataFrame, lives: DataFrame, bucket_ms: int = BUCKET_MS) -> DataFrame:
    """Return peak and mean of each series over its whole run, and the rank of keys by heat.

    The mean is over the run's time, so the means of keys add up to that of their purgatory if every operation has
    one key. `heat` 1 is the key with the most parked milliseconds among those of its side and purgatory; null for
    a whole purgatory and for keys after the first `HOTTEST`.
    """
    # A bucket's change lasts until the run's end, so each row is independent of its neighbours.
    left_ms = sf.col("to_ms") - sf.col("bucket_start_ms")
    carried_ms = sf.col("opening") * sf.least(sf.lit(bucket_ms), left_ms)
    later_ms = sf.greatest(left_ms - bucket_ms, sf.lit(0))
    of_bucket = sf.col("area_ms") - carried_ms + (sf.col("closing") - sf.col("opening")) * later_ms
    summary = (
        buckets.join(sf.broadcast(_spans(lives)), [*RUN], "inner")
        .groupBy(*SERIES, "from_ms", "to_ms")
        .agg(sf.max("peak").alias("peak"), sf.sum(of_bucket).alias("parked_ms"))
    )
    lasted_ms = sf.nullif(sf.col("to_ms") - sf.col("from_ms"), sf.lit(0))
    return (
        _with_heat(summary)
        .withColumn("mean", sf.col("parked_ms") / lasted_ms)
        .select(*SERIES, "peak", "mean", "parked_ms", "heat")
    )


def _with_heat(summary: DataFrame) -> DataFrame:
    """Add the rank of the hottest keys of each side and purgatory.

    Keys are distributed first, and only the hottest of each share remain. So a task ranks its share of the keys,
    and the last one at most `SHARES * HOTTEST`, however many there are.
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
    if needs_code(spark):
        ship_code(spark)
    lives = tables.read(spark, directory, "lifecycles")
    rows = {"rows": sf.count("*")}
    spans = _spans(lives).cache()  # both tables need it: Spark finds it by its plan
    with counting(spark):
        buckets = Counted(occupancy(lives, bucket_ms), rows)
        written = tables.overwrite(buckets.frame, output, "occupancy")
        summary = Counted(occupancy_summary(written, lives, bucket_ms), rows)
        tables.overwrite(summary.frame, output, "occupancy_summary")
        bucket_count, series_count = (counted.counts()["rows"] for counted in (buckets, summary))
    spans.unpersist()
    return f"{bucket_count} buckets of {bucket_ms} ms in {series_count} series"

"""Parity: the simulator's observations compared with those of a real Kafka.

Tables: `parity` (one row per step, attempt and repeat: agreement and difference in time), `parity_scenarios`
(agreement of each scenario) and `parity_timing` (per class of timing the two-sample Kolmogorov-Smirnov distance
between the sides' lateness: the largest gap between their cumulative distributions, with the gap that 5 % of
equal distributions exceed).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf
from pyspark.sql import Window

from broker_sim_integration.comparison.timeliness import KAFKA_LATE_MS, LATE_MS, ROUNDING_MS
from broker_sim_integration.pipeline.spark import tables

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

STEP: Final = ("run_id", "scenario", "repeat", "step", "attempt")
EXACT: Final = ("error_code", "base_offset", "high_watermark", "records", "bytes", "fields")
ACCURACY: Final = 10_000
"""Accuracy of medians: their rank is off by at most a 10 000th of the steps, so no task holds all differences."""
KS_AT_5_PERCENT: Final = 1.3581
"""sqrt(-ln(0.05 / 2) / 2): times sqrt((n + m) / (n m)) this is the critical distance of large samples."""


def parity(observations: DataFrame) -> DataFrame:
    """Return one row per step with the names of the differing fields; nulls for a side that lacks the step."""
    kafka, sim = _side(observations, "kafka"), _side(observations, "sim")
    both = kafka.join(sim, [*STEP], "full_outer")
    differing = sf.array_compact(
        sf.array(
            sf.when(sf.col("kafka").isNull(), "missing at kafka"),
            sf.when(sf.col("sim").isNull(), "missing at sim"),
            *[sf.when(~sf.col(f"kafka.{name}").eqNullSafe(sf.col(f"sim.{name}")), name) for name in (*EXACT, "timing")],
            sf.when(~_in_time("kafka"), "late at kafka"),
            sf.when(~_in_time("sim"), "late at sim"),
        )
    )
    alone = sf.col("kafka").isNull() | sf.col("sim").isNull()
    differing = sf.when(alone, sf.slice(differing, 1, 1)).otherwise(differing)
    return both.select(
        *STEP,
        sf.coalesce("kafka.timing", "sim.timing").alias("timing"),
        (sf.size(differing) == 0).alias("agrees"),
        differing.alias("differs_in"),
        sf.col("kafka.elapsed_ms").alias("kafka_elapsed_ms"),
        sf.col("sim.elapsed_ms").alias("sim_elapsed_ms"),
        (sf.col("sim.elapsed_ms") - sf.col("kafka.elapsed_ms")).alias("elapsed_delta_ms"),
        _lateness("kafka").alias("kafka_lateness_ms"),
        _lateness("sim").alias("sim_lateness_ms"),
    )


def _side(observations: DataFrame, side: str) -> DataFrame:
    rest = [name for name in observations.columns if name not in {*STEP, "side"}]
    return (
        observations.where(sf.col("side") == side)
        .withColumn("fields", _in_order("fields"))
        .select(*STEP, sf.struct(*rest).alias(side))
    )


def _in_order(json: str) -> Column:
    """Return the text of a JSON object with its members sorted; a null stays null."""
    return sf.to_json(sf.try_parse_json(json))


def _lateness(side: str) -> Column:
    return sf.col(f"{side}.elapsed_ms") - sf.col(f"{side}.due_ms")


def _in_time(side: str) -> Column:
    not_early = sf.col(f"{side}.elapsed_ms") >= sf.col(f"{side}.earliest_ms") - ROUNDING_MS
    excused = sf.col(f"{side}.spread_ms") + sf.col(f"{side}.stalled_ms")
    not_late = _lateness(side) - excused <= (KAFKA_LATE_MS if side == "kafka" else LATE_MS)
    return (sf.col(f"{side}.timing") == "untimed") | (not_early & not_late)


def scenario_agreement(steps: DataFrame) -> DataFrame:
    """Return per scenario the number of agreeing steps, the differing fields, and the median difference in time."""
    return steps.groupBy("scenario").agg(
        sf.count("*").alias("steps"),
        sf.count_if("agrees").alias("agreed"),
        (sf.count_if("agrees") / sf.count("*")).alias("agreement"),
        sf.array_sort(sf.array_distinct(sf.flatten(sf.collect_set("differs_in")))).alias("differs_in"),
        sf.percentile_approx("elapsed_delta_ms", 0.5, ACCURACY).alias("elapsed_delta_p50_ms"),
        sf.max(sf.abs("elapsed_delta_ms")).alias("elapsed_delta_max_ms"),
    )


def ks_distance(observations: DataFrame, family: str = "timing") -> DataFrame:
    """Return per family the sides' sample sizes and the distance of their lateness.

    `same` is whether the distance is at most the critical one at 5 %; a family that only one side has is left out.
    """
    lateness = sf.col("elapsed_ms") - sf.col("due_ms")
    per_value = (
        observations.where(sf.col("timing") != "untimed")
        .groupBy(family, lateness.alias("lateness_ms"))
        .agg(sf.count_if(sf.col("side") == "kafka").alias("kafka"), sf.count_if(sf.col("side") == "sim").alias("sim"))
    )
    # First within each millisecond, then over the milliseconds: no task has all values of a family. A gap is
    # linear in the values before its millisecond, so only two of each are needed.
    slots = per_value.withColumn("slot", sf.floor("lateness_ms"))
    sizes = per_value.groupBy(family).agg(sf.sum("kafka").alias("all_kafka"), sf.sum("sim").alias("all_sim"))
    within = Window.partitionBy(family, "slot").orderBy("lateness_ms")
    until_now = within.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    per_slot = (
        slots.join(sf.broadcast(sizes), family, "inner")
        .withColumn("rise", _gap(sf.sum("kafka").over(until_now), sf.sum("sim").over(until_now)))
        .groupBy(family, "slot", "all_kafka", "all_sim")
        .agg(
            sf.sum("kafka").alias("kafka"),
            sf.sum("sim").alias("sim"),
            sf.min("rise").alias("least"),
            sf.max("rise").alias("most"),
        )
    )
    earlier = Window.partitionBy(family).orderBy("slot").rowsBetween(Window.unboundedPreceding, -1)
    opening = sf.coalesce(_gap(sf.sum("kafka").over(earlier), sf.sum("sim").over(earlier)), sf.lit(0.0))
    critical = sf.lit(KS_AT_5_PERCENT) * sf.sqrt((sf.col("kafka") + sf.col("sim")) / (sf.col("kafka") * sf.col("sim")))
    return (
        per_slot.withColumn("opening", opening)
        .withColumn(
            "gap", sf.greatest(sf.abs(sf.col("opening") + sf.col("least")), sf.abs(sf.col("opening") + sf.col("most")))
        )
        .groupBy(family)
        .agg(sf.sum("kafka").alias("kafka"), sf.sum("sim").alias("sim"), sf.max("gap").alias("ks_distance"))
        .where((sf.col("kafka") > 0) & (sf.col("sim") > 0))
        .withColumn("critical", critical)
        .withColumn("same", sf.col("ks_distance") <= sf.col("critical"))
    )


def _gap(kafka: Column, sim: Column) -> Column:
    """Return the difference of two shares; null if a side has no rows at all."""
    gap: Column = sf.try_divide(kafka, "all_kafka") - sf.try_divide(sim, "all_sim")
    return gap


def run(spark: SparkSession, directory: str, output: str) -> str:
    """Write `parity`, `parity_scenarios` and `parity_timing` from `observations`."""
    observations = tables.read(spark, directory, "observations")
    steps = tables.overwrite(parity(observations), output, "parity")
    tables.overwrite(scenario_agreement(steps), output, "parity_scenarios")
    tables.overwrite(ks_distance(observations), output, "parity_timing")
    agreed = steps.where("agrees").count()
    return f"{agreed} of {steps.count()} steps agree"

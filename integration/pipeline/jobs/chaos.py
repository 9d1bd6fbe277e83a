"""Chaos: a test of an application under the faults of very many seeds, on executors.

Each seed is a run in virtual time, as `broker-sim chaos` does it. Tables: `chaos` (a row per seed),
`chaos_shrunk` (some failed seeds with their smallest schedule), `chaos_failures` (each way to fail once,
with the smallest schedule of all) and `chaos_summary`.

Seeds are run in waves, and the outcomes of a wave are in the table when it ends. So what fails or is
stopped keeps what it has, and when it is run again only what is missing is done. Outcomes of another
test, of other options and of other code stay in the tables, by their `code`, and are no part of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyspark.sql.functions as sf
from pyspark.sql import Window
from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from broker_sim.chaos.kinds import weights_of
from broker_sim.chaos.search import ChaosTest, NoSuchTestError, examine, load_test, run_seed
from integration.pipeline.errors import PipelineError
from integration.pipeline.spark import driver, tables
from integration.pipeline.spark.archive import ship_code, ship_modules
from integration.pipeline.spark.rows import map_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "ChaosPlan",
    "ChaosTest",
    "distinct_failures",
    "kinds_of",
    "run",
    "run_all",
    "summary",
    "to_examine",
]

TASKS_PER_CORE: Final = 4
"""Runs differ in cost; with more tasks the cores share them evenly."""
RUNS_PER_TASK: Final = 64
"""The most, so that a task which is lost with its executor is repeated in a minute."""
OUTCOME: Final = StructType(
    [
        StructField("seed", LongType()),
        StructField("invariant", StringType()),
        StructField("error", StringType()),
        StructField("faults", LongType()),
        StructField("cpu_s", DoubleType()),
    ]
)
SHRUNK: Final = StructType(
    [
        StructField("seed", LongType()),
        StructField("invariant", StringType()),
        StructField("kinds", StringType()),
        StructField("faults", LongType()),
        StructField("schedule", StringType()),
        StructField("tries", LongType()),
        StructField("digest", StringType()),
        StructField("repeats", BooleanType()),
        StructField("told", StringType()),
    ]
)


def kinds_of(faults: str | None) -> tuple[tuple[str, float], ...] | None:
    """Return the kinds of a list with their usual weights; raises PipelineError."""
    try:
        return None if faults is None else tuple(weights_of(faults.split(",")).items())
    except ValueError as error:
        raise PipelineError(str(error)) from error


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """Which seeds of a test are run, and how many of each invariant that fails are shrunk."""

    test: ChaosTest
    seeds: int = 1_000
    seed: int = 0
    """The first."""
    examined: int = 5

    def waves(self, at_once: int) -> list[tuple[int, int]]:
        """Return the first seed of each wave, and the one behind its last."""
        end = self.seed + self.seeds
        return [(first, min(first + at_once, end)) for first in range(self.seed, end, at_once)]


def _run_row(test: ChaosTest, row: dict[str, Any]) -> dict[str, Any]:
    found = run_seed(test, row["seed"])
    return {
        "seed": found.seed,
        "invariant": found.invariant,
        "error": found.text,
        "faults": len(test.draw(found.seed).actions),
        "cpu_s": found.cpu_s,
    }


def _shrink_row(test: ChaosTest, row: dict[str, Any]) -> dict[str, Any]:
    failure = examine(test, test.draw(row["seed"]))
    if failure is None:
        return {"seed": row["seed"], "invariant": None}
    small = failure.small
    return {
        "seed": row["seed"],
        "invariant": small.invariant,
        "kinds": ", ".join(failure.kinds),
        "faults": len(small.schedule.actions),
        "schedule": str(small.schedule),
        "tries": failure.tries,
        "digest": small.digest,
        "repeats": failure.repeats,
        "told": str(failure),
    }


def run_all(seeds: DataFrame, test: ChaosTest, tasks: int) -> DataFrame:
    """Return the outcome of each seed, found in `tasks` tasks."""
    return map_rows(seeds, partial(_run_row, test), OUTCOME, tasks)


def to_examine(outcomes: DataFrame, most: int) -> DataFrame:
    """Return the seeds to shrink: of each invariant those with the fewest faults."""
    fewest = Window.partitionBy("invariant").orderBy("faults", "seed")
    return (
        outcomes.where(sf.col("invariant").isNotNull())
        .withColumn("place", sf.row_number().over(fewest))
        .where(sf.col("place") <= most)
        .select("seed")
    )


def distinct_failures(outcomes: DataFrame, shrunk: DataFrame) -> DataFrame:
    """Return each invariant with each set of kinds that breaks it, and the smallest schedule that does."""
    size = sf.struct("faults", sf.length("schedule"), "seed")
    ways = (
        shrunk.where(sf.col("invariant").isNotNull())
        .groupBy("invariant", "kinds")
        .agg(
            sf.count("*").alias("examined"),
            *[
                sf.min_by(name, size).alias(name)
                for name in ("faults", "schedule", "seed", "digest", "repeats", "told")
            ],
        )
    )
    failed = (
        outcomes.where(sf.col("invariant").isNotNull())
        .groupBy("invariant")
        .agg(sf.count("*").alias("failed_seeds"))
    )
    return ways.join(failed, "invariant", "left")


def summary(outcomes: DataFrame, test: ChaosTest) -> DataFrame:
    """Return one row: how many seeds were run, how many failed, and how fast."""
    return outcomes.agg(
        sf.lit(test.name).alias("test"),
        sf.count("*").alias("seeds"),
        sf.count("invariant").alias("failed"),
        sf.sum("cpu_s").alias("cpu_s"),
        sf.try_divide(sf.count("*"), sf.sum("cpu_s")).alias("seeds_per_s_and_core"),
    )


def run(spark: SparkSession, plan: ChaosPlan, output: str, tasks: int | None = None) -> str:
    """Run the seeds of the plan that are missing, shrink some that failed, and write the tables."""
    test = plan.test
    try:
        load_test(test.name)
    except NoSuchTestError as error:
        raise PipelineError(str(error)) from error
    code = f"{ship_code(spark)} {ship_modules(spark)} {test!r}"
    tasks = tasks or TASKS_PER_CORE * driver.cores(spark)
    new = 0
    for first, end in plan.waves(tasks * RUNS_PER_TASK):
        known = _own(spark, output, "chaos", code)
        seeds = spark.range(first, end).withColumnRenamed("id", "seed")
        seeds = tables.without(seeds, known)
        missing = seeds.count() if known is not None else end - first
        if missing:
            found = run_all(seeds, test, min(tasks, missing))
            tables.append(found.withColumn("code", sf.lit(code)), output, "chaos")
            new += missing
    outcomes = _own(spark, output, "chaos", code)
    assert outcomes is not None, "a plan has at least one seed"
    wanted = tables.without(
        to_examine(outcomes, plan.examined), _own(spark, output, "chaos_shrunk", code)
    )
    examined = map_rows(wanted, partial(_shrink_row, test), SHRUNK, tasks)
    tables.append(examined.withColumn("code", sf.lit(code)), output, "chaos_shrunk")
    shrunk = _own(spark, output, "chaos_shrunk", code)
    assert shrunk is not None, "it was just written"
    failures = tables.overwrite(distinct_failures(outcomes, shrunk), output, "chaos_failures")
    row = tables.overwrite(summary(outcomes, test), output, "chaos_summary").first()
    assert row is not None
    known_already = f", {row['seeds'] - new} of them known already" if row["seeds"] > new else ""
    return (
        f"{row['seeds']} seeds{known_already}, {row['failed']} failed in {failures.count()} ways; "
        f"{row['seeds_per_s_and_core']:.1f} seeds a second and core"
    )


def _own(spark: SparkSession, output: str, table: str, code: str) -> DataFrame | None:
    """Return what a table has of this test and this code, None without the table."""
    found = tables.read_or_none(spark, output, table)
    return None if found is None else found.where(sf.col("code") == code).drop("code")

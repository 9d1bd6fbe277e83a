"""Chaos: a test of an application under the faults of very many seeds, on executors.

Each seed is a run in virtual time, as in `broker-sim chaos`. Tables: `chaos` (a row per seed), `chaos_shrunk`
(some failed seeds with their smallest schedule), `chaos_failures` (each distinct failure once, with the smallest
schedule of all) and `chaos_summary`.

Seeds run in waves, and the outcomes of a wave are written when it ends. So a run that fails or is stopped keeps
its finished waves, and a repeated run only does the missing ones. Outcomes of another test, other options or
other code stay in the tables, marked by their `code`, and are ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyspark.sql.functions as sf
from pyspark.sql import Window
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

from broker_sim.chaos.search import NamedTest, NoSuchTestError, run_seed
from broker_sim.chaos.sightings import FaultCount, Sightings
from broker_sim.errors import ConfigError
from broker_sim_integration.pipeline.errors import PipelineError
from broker_sim_integration.pipeline.spark import driver, tables
from broker_sim_integration.pipeline.spark.archive import ship_code, ship_modules
from broker_sim_integration.pipeline.spark.rows import map_rows
from broker_sim_integration.pipeline.spark.waves import append_missing, of_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ChaosPlan", "NamedTest", "distinct_failures", "load", "run", "run_all", "summary", "to_examine"]

USUAL: Final = {"seeds": 1_000}
"""Settings that neither the marker nor an option sets, where they differ from pytest's."""
TASKS_PER_CORE: Final = 4
"""Runs differ in cost; with more tasks the cores share them evenly."""
RUNS_PER_TASK: Final = 64
"""Maximum number of runs per task, so that one lost with its executor is repeated within a minute."""
OUTCOME: Final = StructType(
    [
        StructField("seed", LongType()),
        StructField("invariant", StringType()),
        StructField("error", StringType()),
        StructField("faults", LongType()),
        StructField("cpu_s", DoubleType()),
        StructField("seen", StringType()),
        StructField("counts", StringType()),
    ]
)
COUNTS: Final = "map<string,array<bigint>>"
"""The type of `counts` (JSON): the fields of `FaultCount`, by kind of fault."""
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


def load(name: str, **settings: Any) -> NamedTest:
    """Return the test with this name; settings that are None come from its marker `chaos`. Raise PipelineError."""
    try:
        test = NamedTest.of(name, USUAL, **settings)
    except (ConfigError, NoSuchTestError) as error:
        raise PipelineError(str(error)) from error
    if test.settings.exhaustive or test.settings.schedule is not None:
        raise PipelineError(f"{name}: a schedule, or all orders, are one run after the other: use `broker-sim chaos`")
    return test


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """The seeds of a test to run."""

    test: NamedTest
    seed: int = 0
    """The first seed."""
    examined: int = 5
    """Number of failed seeds of each invariant that are shrunk."""

    def waves(self, at_once: int) -> list[tuple[int, int]]:
        """Return the first seed of each wave and the end of its range (exclusive)."""
        end = self.seed + self.test.settings.seeds
        return [(first, min(first + at_once, end)) for first in range(self.seed, end, at_once)]


def _run_row(test: NamedTest, row: dict[str, Any]) -> dict[str, Any]:
    outcome = run_seed(test, row["seed"])
    return {
        "seed": outcome.seed,
        "invariant": outcome.invariant,
        "error": outcome.text,
        "faults": len(test.draw(outcome.seed).actions),
        "cpu_s": outcome.cpu_s,
        "seen": json.dumps(outcome.seen),
        "counts": json.dumps(dict(outcome.faults)),
    }


def _shrink_row(test: NamedTest, row: dict[str, Any]) -> dict[str, Any]:
    failure = test.examine(test.draw(row["seed"]))
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


def run_all(seeds: DataFrame, test: NamedTest, tasks: int) -> DataFrame:
    """Return the outcome of each seed, computed in `tasks` tasks."""
    return map_rows(seeds, partial(_run_row, test), OUTCOME, tasks)


def to_examine(outcomes: DataFrame, most: int) -> DataFrame:
    """Return the seeds to shrink: for each invariant up to `most` with the fewest faults."""
    fewest = Window.partitionBy("invariant").orderBy("faults", "seed")
    return (
        outcomes.where(sf.col("invariant").isNotNull())
        .withColumn("place", sf.row_number().over(fewest))
        .where(sf.col("place") <= most)
        .select("seed")
    )


def distinct_failures(outcomes: DataFrame, shrunk: DataFrame) -> DataFrame:
    """Return each invariant with each set of fault kinds that breaks it, and the smallest such schedule."""
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
        outcomes.where(sf.col("invariant").isNotNull()).groupBy("invariant").agg(sf.count("*").alias("failed_seeds"))
    )
    return ways.join(failed, "invariant", "left")


def summary(outcomes: DataFrame, test: NamedTest) -> DataFrame:
    """Return one row with the number of seeds, the number of failed ones, and the speed."""
    return outcomes.agg(
        sf.lit(test.name).alias("test"),
        sf.count("*").alias("seeds"),
        sf.count("invariant").alias("failed"),
        sf.sum("cpu_s").alias("cpu_s"),
        sf.try_divide(sf.count("*"), sf.sum("cpu_s")).alias("seeds_per_s_and_core"),
    )


def sightings(outcomes: DataFrame) -> Sightings:
    """Return how many faults took effect, and how many seeds fulfilled each `sometimes` and `reached` of the test."""
    counted = Sightings()
    for row in outcomes.groupBy("seen").count().collect():
        counted.add(json.loads(row["seen"]), {}, row["count"])
    sums = [sf.sum(sf.col("counts")[index]).alias(name) for index, name in enumerate(FaultCount._fields)]
    by_kind = outcomes.select(sf.explode(sf.from_json("counts", COUNTS)).alias("kind", "counts"))
    for row in by_kind.groupBy("kind").agg(*sums).collect():
        counted.faults[row["kind"]] = FaultCount(*row[1:])
    return counted


def run(spark: SparkSession, plan: ChaosPlan, output: str, tasks: int | None = None) -> str:
    """Run the missing seeds of the plan, shrink some failed ones, and write the tables.

    Raise PipelineError, with the tables written, if no seed fulfilled a `sometimes` or `reached` of the test.
    """
    test = plan.test
    code = f"{ship_code(spark)} {ship_modules(spark)} {test!r}"
    tasks = tasks or TASKS_PER_CORE * driver.cores(spark)
    known, new = of_code(spark, output, "chaos", code), 0
    for first, end in plan.waves(tasks * RUNS_PER_TASK):
        new += append_missing(
            spark.range(first, end).withColumnRenamed("id", "seed"),
            known,
            lambda seeds, count: run_all(seeds, test, min(tasks, count)),
            output,
            "chaos",
            code,
        )
    outcomes = of_code(spark, output, "chaos", code)
    assert outcomes is not None, "a plan has at least one seed"
    append_missing(
        to_examine(outcomes, plan.examined),
        of_code(spark, output, "chaos_shrunk", code),
        lambda seeds, count: map_rows(seeds, partial(_shrink_row, test), SHRUNK, min(tasks, count)),
        output,
        "chaos_shrunk",
        code,
    )
    shrunk = of_code(spark, output, "chaos_shrunk", code)
    if shrunk is None:  # no seed has ever failed
        shrunk = spark.createDataFrame([], SHRUNK)
    failures = tables.overwrite(distinct_failures(outcomes, shrunk), output, "chaos_failures")
    row = tables.overwrite(summary(outcomes, test), output, "chaos_summary").first()
    assert row is not None
    known_already = f", {row['seeds'] - new} of them known already" if row["seeds"] > new else ""
    text = (
        f"{row['seeds']} seeds{known_already}, {row['failed']} failed in {failures.count()} ways; "
        f"{row['seeds_per_s_and_core']:.1f} seeds a second and core"
    )
    seen = sightings(outcomes)
    text = "; ".join((text, *seen.lines()))
    if reason := seen.failure():
        raise PipelineError(f"{text}; {reason}")
    return text

"""Sweep: how often acks=all times out with given settings, by many seeded runs on executors.

The settings are a grid, or a sample drawn from hashes of row numbers, so that it does not depend on Spark's
partitions. Each row is one run in virtual time with its own seed; results depend on nothing else but the code.
Tables: `sweep` (a row per run), `sweep_summary`.

Seeds are simulated in waves, and the results of a wave are written when it ends. So a sweep that fails or is
stopped keeps its finished waves, and a repeated sweep simulates only the missing ones. Results of other code
stay in the table, marked by their `code`, and are ignored.

The specification is a JSON object from settings (`SweepSettings`) to lists of values or, for a sample, also to
{"from": low, "to": high}:

    {"replica_lag_time_max_ms": [5000, 30000], "failures_per_minute": {"from": 0, "to": 4}}
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import pyspark.sql.functions as sf
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from broker_sim_integration.pipeline.errors import PipelineError
from broker_sim_integration.pipeline.jobs.sweep_run import DELAYS, SweepOutcome, SweepSettings, simulate_row
from broker_sim_integration.pipeline.spark import driver, tables
from broker_sim_integration.pipeline.spark.archive import ship_code
from broker_sim_integration.pipeline.spark.rows import map_rows
from broker_sim_integration.pipeline.spark.waves import append_missing, of_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

TASKS_PER_CORE: Final = 4
"""Runs differ in cost by an order of magnitude; with more tasks the cores share them evenly."""
RUNS_PER_TASK: Final = 8
"""Number of runs per task of a full wave, so that a task that is lost with its executor is repeated within a minute."""
MANTISSA_BITS: Final = 53

DEFAULT_SPECIFICATION: Final[Mapping[str, Any]] = {
    "replica_lag_time_max_ms": [2_000, 5_000, 10_000, 30_000],
    "request_timeout_ms": [1_000, 3_000, 10_000, 30_000],
    "min_insync_replicas": [2, 3],
    "failures_per_minute": [2.0],
}

_SPARK_TYPES: Final[Mapping[Any, LongType | DoubleType | StringType]] = {
    int: LongType(),
    float: DoubleType(),
    str: StringType(),
    int | None: LongType(),
    float | None: DoubleType(),
}


def _schema(*parts: type) -> StructType:
    hints = [(name, hint) for part in parts for name, hint in get_type_hints(part).items()]
    return StructType([StructField(name, _SPARK_TYPES[hint]) for name, hint in hints])


SETTINGS_SCHEMA: Final = _schema(SweepSettings)
RESULT_SCHEMA: Final = _schema(SweepSettings, SweepOutcome)


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The simulated settings: a grid, or `sample_size` draws; each with `repeats` seeds."""

    specification: Mapping[str, Any]
    sample_size: int | None = None
    repeats: int = 3
    seed: int = 0

    @property
    def settings(self) -> int:
        """Number of settings, without their seeds."""
        return self.sample_size or math.prod(map(len, self.specification.values()))


def read_specification(path: str) -> dict[str, Any]:
    """Read a specification; raise PipelineError with the faulty part."""
    try:
        specification = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PipelineError(f"{path}: {error}") from error
    names = {field.name for field in fields(SweepSettings)} - {"seed"}
    if not isinstance(specification, dict) or not specification.keys() <= names:
        raise PipelineError(f"{path}: write a JSON object from settings to values; settings are {sorted(names)}")
    for name, values in specification.items():
        ranged = isinstance(values, dict) and values.keys() == {"from", "to"}
        if not ranged and not (isinstance(values, list) and values):
            raise PipelineError(f'{path}: {name}: give a list of values or {{"from": 1, "to": 2}}')
    unknown = set(specification.get("follower_delay", ())) - DELAYS.keys()
    if unknown:
        raise PipelineError(f"{path}: follower_delay: choose from {', '.join(DELAYS)}")
    return specification


def grid(spark: SparkSession, plan: SweepPlan) -> DataFrame:
    """Return every combination of the listed values, with every seed; raise PipelineError."""
    ranged = [name for name, values in plan.specification.items() if isinstance(values, dict)]
    if ranged:
        raise PipelineError(f"{', '.join(ranged)}: a range needs --sample, a grid needs values")
    rows = spark.range(1).drop("id")
    for name, values in plan.specification.items():
        rows = rows.withColumn(name, sf.explode(sf.array(*map(sf.lit, values))))
    return _with_seeds(rows, plan)


def sample(spark: SparkSession, plan: SweepPlan) -> DataFrame:
    """Return `sample_size` settings drawn at random, with every seed; raise PipelineError."""
    draws = spark.range(plan.sample_size or 0)
    for name, values in plan.specification.items():
        share = _uniform(sf.lit(name), sf.lit(plan.seed), sf.col("id"))
        draws = draws.withColumn(name, _pick(share, values))
    return _with_seeds(draws.drop("id"), plan)


def _uniform(*parts: Column) -> Any:
    """Return a number in [0, 1) that depends only on `parts`, not on the partition."""
    return sf.shiftrightunsigned(sf.xxhash64(*parts), 64 - MANTISSA_BITS) / float(1 << MANTISSA_BITS)


def _pick(share: Column, values: Any) -> Column:
    if isinstance(values, dict):
        ranged: Column = sf.lit(values["from"]) + share * (values["to"] - values["from"])
        return ranged
    position = sf.floor(share * len(values)).cast("int")
    return sf.get(sf.array(*map(sf.lit, values)), position)


def _with_seeds(rows: DataFrame, plan: SweepPlan) -> DataFrame:
    """Add the same seeds to each row, so that settings are compared under the same random events."""
    seeds = sf.sequence(sf.lit(plan.seed), sf.lit(plan.seed + plan.repeats - 1))
    seeded = rows.withColumn("seed", sf.explode(seeds))
    defaults = SweepSettings()
    return seeded.select(
        *[
            (sf.col(field.name) if field.name in seeded.columns else sf.lit(getattr(defaults, field.name)))
            .cast(field.dataType)
            .alias(field.name)
            for field in SETTINGS_SCHEMA.fields
        ]
    )


def simulate_all(settings: DataFrame, tasks: int) -> DataFrame:
    """Return the settings with their outcomes, simulated in `tasks` tasks."""
    return map_rows(settings, simulate_row, RESULT_SCHEMA, tasks)


def sweep_summary(results: DataFrame) -> DataFrame:
    """Return per settings, over all seeds, the shares of requests that timed out or got an error."""
    settings = [name for name in SETTINGS_SCHEMA.names if name != "seed"]
    share = sf.try_divide(sf.col("timed_out"), sf.col("requests"))
    return results.groupBy(*settings).agg(
        sf.count("*").alias("runs"),
        sf.sum("requests").alias("requests"),
        sf.sum("acknowledged").alias("acknowledged"),
        sf.sum("timed_out").alias("timed_out"),
        sf.sum("refused").alias("refused"),
        sf.sum("failed").alias("failed"),
        sf.try_divide(sf.sum("timed_out"), sf.sum("requests")).alias("timed_out_share"),
        sf.try_divide(sf.sum("refused"), sf.sum("requests")).alias("refused_share"),
        sf.min(share).alias("timed_out_share_min"),
        sf.max(share).alias("timed_out_share_max"),
        sf.max("waited_max_ms").alias("waited_max_ms"),
    )


def waves(plan: SweepPlan, runs: int) -> list[tuple[int, int]]:
    """Return the first and last seed of each wave, which has at least `runs` runs unless it is the last one."""
    seeds = math.ceil(runs / plan.settings)
    end = plan.seed + plan.repeats
    return [(first, min(first + seeds, end) - 1) for first in range(plan.seed, end, seeds)]


def run(spark: SparkSession, plan: SweepPlan, output: str, tasks: int | None = None) -> str:
    """Simulate the missing runs of the plan, and write `sweep` and `sweep_summary`; return a summary."""
    code = ship_code(spark)
    settings = sample(spark, plan) if plan.sample_size else grid(spark, plan)
    at_once = tasks or TASKS_PER_CORE * driver.cores(spark)
    known = of_code(spark, output, "sweep", code)
    simulated = 0
    for first, last in waves(plan, at_once * RUNS_PER_TASK):
        simulated += append_missing(
            settings.where(sf.col("seed").between(first, last)),
            known,
            lambda wave, runs: simulate_all(wave, max(min(at_once, runs), runs // RUNS_PER_TASK)),
            output,
            "sweep",
            code,
        )
    results = of_code(spark, output, "sweep", code)
    assert results is not None, "a plan has at least one run"
    summary = tables.overwrite(sweep_summary(results), output, "sweep_summary")
    total = results.count()
    known_already = f", {total - simulated} runs known already" if total > simulated else ""
    return f"{total} runs of {summary.count()} settings{known_already}"

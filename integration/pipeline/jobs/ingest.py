"""Ingest: lines to typed tables, each event once, even if it is read twice or late.

Tables: `events` (by date, side and purgatory), `observations`, `quarantine`. Two events are
equal when all their fields are. Rows that the tables have already are not written again, so an
interrupted run can be repeated; late events are stored under their own date.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from integration.pipeline.errors import PipelineError
from integration.pipeline.jobs.parquet_trace import is_parquet, read_events
from integration.pipeline.jobs.schema import parse
from integration.pipeline.spark import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = [
    "IngestCounts",
    "events",
    "observations",
    "quarantine",
    "quarantine_rows",
    "read_lines",
    "run",
]

OBSERVATION_PARTITIONS: Final = ("side",)
STAGING: Final = "staging"


@dataclass(frozen=True, slots=True)
class IngestCounts:
    """How many lines went where; `lines` is the sum of the next four."""

    lines: int
    events: int
    observations: int
    quarantined: int
    duplicates: int

    def __str__(self) -> str:
        return (
            f"{self.lines} lines: {self.events} new events, {self.observations} new observations, "
            f"{self.quarantined} quarantined, {self.duplicates} known already"
        )


def read_lines(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """Return the lines of files (`*.gz` too), directories or patterns, with their source."""
    try:
        text = spark.read.text(list(inputs))
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise PipelineError(f"no such input: {', '.join(inputs)}") from error
        raise
    return text.select(
        sf.col("_metadata.file_path").alias("source"),
        sf.col("value").alias("line"),
    )


def events(parsed: DataFrame) -> DataFrame:
    """Return the events among parsed lines, each once, with their `date` (UTC)."""
    found = parsed.where(sf.col("goes_to") == "events").select("event.*")
    return found.withColumn("date", sf.to_date(sf.timestamp_millis("ts_ms"))).dropDuplicates()


def observations(parsed: DataFrame) -> DataFrame:
    """Return the observations among parsed lines, each once."""
    return (
        parsed.where(sf.col("goes_to") == "observations").select("observation.*").dropDuplicates()
    )


def quarantine_rows(parsed: DataFrame) -> DataFrame:
    """Return the lines that do not fit the contract: source, line, reason."""
    return parsed.where(sf.col("goes_to") == "quarantine").select("source", "line", "reason")


def quarantine(parsed: DataFrame) -> DataFrame:
    """Return the same, each line once, with how often (`times`) it occurred."""
    return (
        quarantine_rows(parsed)
        .groupBy("source", "line", "reason")
        .agg(sf.count("*").alias("times"))
    )


def run(spark: SparkSession, inputs: Sequence[str], output: str) -> IngestCounts:
    """Ingest files into the tables under `output`; safe to run again, but not twice at once."""
    parsed = _judged(spark, inputs)
    with _staged(parsed, output) as (staged, counts):
        added = {
            name: _append(make(staged), output, name, partitions) if counts.get(name) else 0
            for name, make, partitions in (
                ("events", events, tables.EVENT_PARTITIONS),
                ("observations", observations, OBSERVATION_PARTITIONS),
                ("quarantine", quarantine, ()),
            )
        }
    good = counts.get("events", 0) + counts.get("observations", 0)
    return IngestCounts(
        lines=sum(counts.values()),
        events=added["events"],
        observations=added["observations"],
        quarantined=counts.get("quarantine", 0),
        duplicates=good - added["events"] - added["observations"],
    )


def _judged(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """Return what `parse` does, of lines and of Parquet traces."""
    columnar = [path for path in inputs if is_parquet(path)]
    lines = [path for path in inputs if not is_parquet(path)]
    frames = [parse(read_lines(spark, lines))] if lines else []
    frames += [read_events(spark, columnar)] if columnar else []
    return reduce(DataFrame.unionByName, frames)


@contextmanager
def _staged(parsed: DataFrame, output: str) -> Iterator[tuple[DataFrame, dict[str, int]]]:
    """Store the parsed lines, so that they are parsed once although several tables are written."""
    kept = parsed.withColumn("line", sf.when(sf.col("reason").isNotNull(), sf.col("line")))
    try:
        staged = tables.overwrite(kept, output, STAGING, ("goes_to",))
        counts = {
            row["goes_to"]: row["count"] for row in staged.groupBy("goes_to").count().collect()
        }
        yield staged, counts
    finally:
        tables.delete(parsed.sparkSession, output, STAGING)


def _append(frame: DataFrame, output: str, table: str, partitions: Sequence[str]) -> int:
    """Append the new rows and return their number."""
    spark = frame.sparkSession
    known = tables.read_or_none(spark, output, table)
    before = 0 if known is None else known.count()
    tables.append_new(tables.without(frame, known), output, table, partitions)
    after: int = tables.read(spark, output, table).count()
    return after - before

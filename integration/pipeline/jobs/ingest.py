"""Ingest: lines to typed tables, each event once, even if it is read twice or late.

Tables: `events` (by date, side and purgatory), `observations`, `quarantine`. Two events are
equal when all their fields are. Rows that the tables have already are not written again, so an
interrupted run can be repeated; late events are stored under their own date.

Lines are parsed while the events are written, and counted on the way. Only what is no event of the
contract is read again: observations, and lines that do not fit, which need the slow way to a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException
from pyspark.sql import Observation

from integration.pipeline.errors import PipelineError
from integration.pipeline.jobs.schema import parse, read_values
from integration.pipeline.spark import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "IngestCounts",
    "counted_values",
    "events",
    "observations",
    "quarantine",
    "quarantine_rows",
    "read_lines",
    "run",
]

OBSERVATION_PARTITIONS: Final = ("side",)


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


def counted_values(lines: DataFrame, counts: Observation) -> DataFrame:
    """Return `read_values`, which counts `lines`, `events` and `observations` when it is written."""
    is_observation, fits = sf.col("is_observation"), sf.col("fits")
    return read_values(lines).observe(
        counts,
        sf.count("*").alias("lines"),
        sf.count_if(~is_observation & fits).alias("events"),
        sf.count_if(is_observation & fits).alias("observations"),
    )


def events(values: DataFrame) -> DataFrame:
    """Return the events among the rows of `read_values`, each once, with their `date` (UTC)."""
    found = values.where(sf.col("fits") & ~sf.col("is_observation")).select("read_event.value.*")
    return found.withColumn("date", sf.to_date(sf.timestamp_millis("ts_ms"))).dropDuplicates()


def observations(values: DataFrame) -> DataFrame:
    """Return the observations among the rows of `read_values`, each once."""
    found = values.where(sf.col("is_observation") & sf.col("fits"))
    return found.select("read_observation.value.*").dropDuplicates()


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
    lines = read_lines(spark, inputs)
    observed = Observation()
    values = counted_values(lines, observed)
    added = {"events": _append(events(values), output, "events", tables.EVENT_PARTITIONS)}
    counted = observed.get
    if counted["observations"]:
        found = observations(read_values(lines))
        added["observations"] = _append(found, output, "observations", OBSERVATION_PARTITIONS)
    quarantined = counted["lines"] - counted["events"] - counted["observations"]
    if quarantined:
        _append(quarantine(parse(lines)), output, "quarantine", ())
    return IngestCounts(
        lines=counted["lines"],
        events=added["events"],
        observations=added.get("observations", 0),
        quarantined=quarantined,
        duplicates=counted["events"] + counted["observations"] - sum(added.values()),
    )


def _append(frame: DataFrame, output: str, table: str, partitions: Sequence[str]) -> int:
    """Append the new rows and return their number."""
    spark = frame.sparkSession
    known = tables.read_or_none(spark, output, table)
    before = 0 if known is None else known.count()
    tables.append_new(tables.without(frame, known), output, table, partitions)
    written = tables.read_or_none(spark, output, table)
    return 0 if written is None else written.count() - before

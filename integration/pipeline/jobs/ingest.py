"""Ingest: lines to typed tables, each event once, even if it is read twice or late.

Tables: `events` (by date, side and purgatory), `observations`, `quarantine`. Two events are
equal when all their fields are. Rows that the tables have already are not written again, so an
interrupted run can be repeated; late events are stored under their own date.

The lines are parsed once, on the way into `events`, and counted there. Only if there are observations or
lines that do not fit is the input read again, and then only those are parsed: an observation shows in its
text, and of each line that does not fit the first pass keeps a bit of its hash. What is known already is read
only for the runs, the dates and the time that the input has, so an ingest costs what is new.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import click
import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException

from integration.pipeline.errors import PipelineError
from integration.pipeline.jobs.parquet_trace import is_parquet, read_events
from integration.pipeline.jobs.schema import is_observation, parse
from integration.pipeline.spark import tables
from integration.pipeline.spark.counting import Counted, counting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = [
    "IngestCounts",
    "events",
    "known_events",
    "large_gzips",
    "observations",
    "quarantine",
    "quarantine_rows",
    "read_inputs",
    "read_lines",
    "run",
]

DESTINATIONS: Final = ("events", "observations", "quarantine")
OBSERVATION_PARTITIONS: Final = ("side",)
GZIP: Final = ".gz"
MS_PER_DAY: Final = 86_400_000
MOST_RUNS: Final = 1_000
"""More runs than these are not told apart when the known events are read."""
SLOTS: Final = 32_768
"""How many bits there are for the hashes of lines that do not fit: those that Spark's bitmap has."""
MOST_SLOTS: Final = 2_000
"""With more bits than these the input is parsed whole once more: then much of it does not fit."""
MOST_WARNINGS: Final = 3
LARGE_GZIP_BYTES: Final = 64 << 20
"""Some minutes of one task; a smaller file is not worth a word."""


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


def read_inputs(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """Return what `parse` does, of lines and of Parquet traces."""
    columnar = [path for path in inputs if is_parquet(path)]
    lines = [path for path in inputs if not is_parquet(path)]
    frames = [parse(read_lines(spark, lines))] if lines else []
    frames += [read_events(spark, columnar)] if columnar else []
    return reduce(lambda left, right: left.unionByName(right), frames)


def _read_observations(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """Return the parsed observations of the inputs; no other line is parsed. Parquet traces have none."""
    lines = read_lines(spark, [path for path in inputs if not is_parquet(path)])
    return observations(parse(lines.where(is_observation())))


def _read_quarantine(spark: SparkSession, inputs: Sequence[str], slots: bytes) -> DataFrame:
    """Return what does not fit among the inputs; of lines, only those are parsed whose slot is set."""
    marked = [
        byte * 8 + bit for byte, value in enumerate(slots) for bit in range(8) if value >> bit & 1
    ]
    columnar = [path for path in inputs if is_parquet(path)]
    lines = [path for path in inputs if not is_parquet(path)]
    frames = [read_events(spark, columnar)] if columnar else []
    if lines:
        text = read_lines(spark, lines)
        frames += [parse(text.where(_slot().isin(marked)) if len(marked) <= MOST_SLOTS else text)]
    return quarantine(reduce(lambda left, right: left.unionByName(right), frames))


def _slot() -> Column:
    """Return the bit that stands for a line."""
    return sf.pmod(sf.xxhash64("line"), sf.lit(SLOTS))


def large_gzips(spark: SparkSession, inputs: Sequence[str]) -> list[str]:
    """Return a warning for each compressed file that keeps one task busy for long."""
    lines = [path for path in inputs if not is_parquet(path)]
    if not lines:
        return []
    if not any(path.endswith(GZIP) for path in _text(spark, lines).inputFiles()):
        return []
    files = spark.read.format("binaryFile").option("pathGlobFilter", f"*{GZIP}").load(lines)
    return [
        f"{row.path} has {row.length / 1e6:.0f} MB, and one task alone unpacks it: many smaller files"
        " or a trace that is written as Parquet (--trace FILE.parquet) are read by many tasks"
        for row in files.where(sf.col("length") > LARGE_GZIP_BYTES)
        .select("path", "length")
        .take(MOST_WARNINGS)
    ]


def read_lines(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """Return the lines of files (`*.gz` too), directories or patterns, with their source.

    A compressed file is read by one task; its lines are dealt out, so that many tasks parse them.
    """
    text = _text(spark, inputs)
    files = text.inputFiles()
    if columnar := [path for path in files if is_parquet(path)]:
        raise PipelineError(
            f"{columnar[0]} is Parquet: give the directory of that trace, whose name ends in"
            " .parquet, as an input of its own"
        )
    lines = text.select(
        sf.col("_metadata.file_path").alias("source"),
        sf.col("value").alias("line"),
    )
    if not any(path.endswith(GZIP) for path in files):
        return lines
    packed = sf.col("source").endswith(GZIP)
    dealt = lines.where(packed).hint("rebalance", sf.col("line"))
    return lines.where(~packed).unionAll(dealt)


def _text(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    try:
        text = spark.read.text(list(inputs))
        # A client of Spark Connect looks for the files only when it is asked what is in them.
        _ = text.columns
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise PipelineError(f"no such input: {', '.join(inputs)}") from error
        raise
    return text


def events(parsed: DataFrame) -> DataFrame:
    """Return the events among parsed lines, each once, with their `date` (UTC)."""
    found = parsed.where(sf.col("goes_to") == "events").select("event.*")
    return found.withColumn("date", _date(sf.col("ts_ms"))).dropDuplicates()


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


def known_events(known: DataFrame, inputs: DataFrame) -> DataFrame:
    """Return of the `known` events those that some of the `inputs` (parsed lines) may be equal to.

    They are of the same runs, dates and time. All three are compared with constants, so that Spark
    leaves out files: by their directory, and by the least and greatest values that Parquet keeps.
    """
    runs = (
        inputs.where(sf.col("goes_to") == "events")
        .groupBy("event.run_id")
        .agg(sf.min("event.ts_ms").alias("from_ms"), sf.max("event.ts_ms").alias("to_ms"))
        .limit(MOST_RUNS + 1)
        .collect()
    )
    if len(runs) > MOST_RUNS:
        return known
    if not runs:
        return known.limit(0)
    from_ms, to_ms = min(run.from_ms for run in runs), max(run.to_ms for run in runs)
    return known.where(
        sf.col("run_id").isin([run.run_id for run in runs])
        & sf.col("ts_ms").between(from_ms, to_ms)
        & sf.col("date").between(*(_date(sf.lit(ms)) for ms in (from_ms, to_ms)))
    )


def _date(ms: Column) -> Column:
    """Return the date in UTC, whatever the time zone of the session is."""
    return sf.date_from_unix_date(sf.floor(ms / MS_PER_DAY).cast("int"))


def run(spark: SparkSession, inputs: Sequence[str], output: str) -> IngestCounts:
    """Ingest files into the tables under `output`; safe to run again, but not twice at once."""
    for warning in large_gzips(spark, inputs):
        click.echo(f"warning: {warning}", err=True)
    parsed = read_inputs(spark, inputs)
    known = tables.read_or_none(spark, output, "events")
    if known is not None:
        known = known_events(known, parsed)
    with counting(spark):
        # The slot is a column, so that the text of a line that fits goes no further.
        slot = sf.when(sf.col("goes_to") == "quarantine", _slot())
        seen = Counted(
            parsed.withColumn("slot", slot),
            {name: sf.count_if(sf.col("goes_to") == name) for name in DESTINATIONS}
            | {"slots": sf.bitmap_construct_agg(sf.col("slot"))},
        )
        new = tables.without(events(seen.frame), known)
        added = tables.append_new(new, output, "events", tables.EVENT_PARTITIONS)
        counts = seen.counts()
        slots = counts.pop("slots")
        new_observations = 0
        if counts["observations"]:
            new_observations = _append(
                _read_observations(spark, inputs), output, "observations", OBSERVATION_PARTITIONS
            )
        if counts["quarantine"]:
            _append(_read_quarantine(spark, inputs, slots), output, "quarantine", ())
    return IngestCounts(
        lines=sum(counts.values()),
        events=added,
        observations=new_observations,
        quarantined=counts["quarantine"],
        duplicates=counts["events"] + counts["observations"] - added - new_observations,
    )


def _append(frame: DataFrame, output: str, table: str, partitions: Sequence[str]) -> int:
    """Append the rows that a small table does not have yet, and return their number."""
    known = tables.read_or_none(frame.sparkSession, output, table)
    return tables.append_new(tables.without(frame, known), output, table, partitions)

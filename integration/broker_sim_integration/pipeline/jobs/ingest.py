"""Ingest: from lines to typed tables, each event once, even if it is read twice or late.

Tables: `events` (by date, side and purgatory), `observations`, `quarantine`. Two events are equal if all their
fields are. Rows that the tables already contain are not written again, so an interrupted run can be repeated;
late events are stored under their own date.

Lines are read at most twice. `quick_events` reads nearly all events while they are written, and records a bit
of the hash of each remaining line: observations, lines that do not fit, and events in an unusual form. Only if
there are any is the input read again, and then only lines with these bits are parsed, strictly and one by one.
Existing events are read only for the runs, the dates and the time of the input, so an ingest costs only as
much as its new data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import click
import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException

from broker_sim_integration.pipeline.errors import PipelineError
from broker_sim_integration.pipeline.jobs.parquet_trace import is_parquet, read_events
from broker_sim_integration.pipeline.jobs.quick_lines import SLOT, quick_events
from broker_sim_integration.pipeline.jobs.schema import EVENT_SCHEMA, is_observation, parse
from broker_sim_integration.pipeline.spark import tables
from broker_sim_integration.pipeline.spark.counting import Counted, counting
from broker_sim_integration.pipeline.spark.session import are_small

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

DESTINATIONS: Final = ("events", "observations", "quarantine")
LEFT: Final = "left"
"""Destination of the lines that the first pass leaves to the second."""
OBSERVATION_PARTITIONS: Final = ("side",)
GZIP: Final = ".gz"
MS_PER_DAY: Final = 86_400_000
DEAL: Final = "deal"
DEALS: Final = 1_024
"""Number of parts into which the operations of a table's partition are divided, so that no task gets all."""
MOST_RUNS: Final = 1_000
"""Number of runs above which all existing events are read."""
SLOTS: Final = 32_768
"""Number of bits for the hashes of lines left to the second pass: the size of Spark's bitmap."""
MOST_SLOTS: Final = 2_000
"""Number of bits above which the second pass parses the whole input, because much of it is left anyway."""
MOST_WARNINGS: Final = 3
LARGE_GZIP_BYTES: Final = 64 << 20
"""Size in bytes above which a compressed file gets a warning: it keeps one task busy for minutes."""


@dataclass(frozen=True, slots=True)
class IngestCounts:
    """Number of lines by destination; `lines` is the sum of the next four fields."""

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


def read_quickly(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """Return the fields of most events, `goes_to` (events, left), and the `slot` of the rows that are left."""
    lines, columnar = _by_format(inputs)
    frames = []
    if lines:
        frames += [quick_events(read_lines(spark, lines).select("line", _slot()))]
    if columnar:
        fits = sf.col("goes_to") == "events"
        # Any slot is valid, because only lines are selected by their slot.
        slot = sf.when(~fits, sf.lit(0)).alias(SLOT)
        frames += [read_events(spark, columnar).select("event.*", slot)]
    goes_to = sf.when(sf.col(SLOT).isNull(), "events").otherwise(LEFT)
    return _all(frames).withColumn("goes_to", goes_to)


def read_strictly(spark: SparkSession, inputs: Sequence[str], slots: bytes) -> DataFrame:
    """Return `parse` of the lines whose slot is set, and the Parquet rows that do not fit."""
    marked = [byte * 8 + bit for byte, value in enumerate(slots) for bit in range(8) if value >> bit & 1]
    lines, columnar = _by_format(inputs)
    frames = []
    if lines:
        text = read_lines(spark, lines)
        frames += [parse(text.where(_slot().isin(marked)) if len(marked) <= MOST_SLOTS else text)]
    if columnar:
        frames += [read_events(spark, columnar).where(sf.col("goes_to") != "events")]
    return _all(frames)


def _read_observations(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """Return the parsed observations of the inputs; other lines are not parsed. Parquet traces have none."""
    lines, _ = _by_format(inputs)
    return observations(parse(read_lines(spark, lines).where(is_observation())))


def _by_format(inputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the inputs with lines, and the Parquet inputs."""
    lines = [path for path in inputs if not is_parquet(path)]
    return lines, [path for path in inputs if is_parquet(path)]


def _all(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionByName(right), frames)


def _slot() -> Column:
    """Return the bit that stands for a line."""
    return sf.pmod(sf.xxhash64("line"), sf.lit(SLOTS)).cast("int").alias(SLOT)


def large_gzips(spark: SparkSession, inputs: Sequence[str]) -> list[str]:
    """Return a warning for each compressed file that keeps one task busy for long."""
    lines, _ = _by_format(inputs)
    if not lines or are_small(lines):
        return []
    if not any(path.endswith(GZIP) for path in _text(spark, lines).inputFiles()):
        return []
    files = spark.read.format("binaryFile").option("pathGlobFilter", f"*{GZIP}").load(lines)
    return [
        f"{row.path} has {row.length / 1e6:.0f} MB, and one task alone unpacks it: many smaller files"
        " or a trace that is written as Parquet (--trace FILE.parquet) are read by many tasks"
        for row in files.where(sf.col("length") > LARGE_GZIP_BYTES).select("path", "length").take(MOST_WARNINGS)
    ]


def read_lines(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """Return the lines of files (also `*.gz`), directories or patterns, with their source.

    A compressed file is read by one task; its lines are then distributed, so that many tasks parse them.
    """
    text = _text(spark, inputs)
    files = text.inputFiles()
    if columnar := [path for path in files if is_parquet(path)]:
        raise PipelineError(
            f"{columnar[0]} is Parquet: give the directory of that trace, whose name ends in"
            " .parquet, as an input of its own"
        )
    lines = text.select(sf.col("_metadata.file_path").alias("source"), sf.col("value").alias("line"))
    if not any(path.endswith(GZIP) for path in files):
        return lines
    packed = sf.col("source").endswith(GZIP)
    dealt = lines.where(packed).hint("rebalance", sf.col("line"))
    return lines.where(~packed).unionAll(dealt)


def _text(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    try:
        text = spark.read.text(list(inputs))
        # A client of Spark Connect looks for the files only when it needs the columns.
        _ = text.columns
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise PipelineError(f"no such input: {', '.join(inputs)}") from error
        raise
    return text


def events(read: DataFrame) -> DataFrame:
    """Return the events among rows with an event's fields and `goes_to`, each once, with their `date` (UTC).

    One shuffle brings equal events together, and those of a partition of the table. If duplicates were removed on
    both sides of a shuffle, Spark's hash table would outgrow a task's memory on the first side.
    """
    event_rows = read.where(sf.col("goes_to") == "events").select(*EVENT_SCHEMA.names)
    dealt = event_rows.withColumns(
        {"date": _date(sf.col("ts_ms")), DEAL: sf.pmod("operation_id", sf.lit(DEALS)).cast("int")}
    )
    return dealt.repartition(*tables.EVENT_PARTITIONS, DEAL).dropDuplicates().drop(DEAL)


def observations(parsed: DataFrame) -> DataFrame:
    """Return the observations among parsed lines, each once."""
    return parsed.where(sf.col("goes_to") == "observations").select("observation.*").dropDuplicates()


def quarantine_rows(parsed: DataFrame) -> DataFrame:
    """Return the lines that do not fit the contract: source, line, reason."""
    return parsed.where(sf.col("goes_to") == "quarantine").select("source", "line", "reason")


def quarantine(parsed: DataFrame) -> DataFrame:
    """Return each line of `quarantine_rows` once, with its number of occurrences (`times`)."""
    return quarantine_rows(parsed).groupBy("source", "line", "reason").agg(sf.count("*").alias("times"))


def known_events(known: DataFrame, read: DataFrame) -> DataFrame:
    """Return the `known` events that may be equal to some of the `read` events.

    They have the same runs, dates and time range. All three are compared with constants, so that Spark skips
    files: by their directory, and by the minimum and maximum values in Parquet.
    """
    runs = (
        read.where(sf.col("goes_to") == "events")
        .groupBy("run_id")
        .agg(sf.min("ts_ms").alias("from_ms"), sf.max("ts_ms").alias("to_ms"))
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
    """Return the date in UTC, whatever the time zone of the session."""
    return sf.date_from_unix_date(sf.floor(ms / MS_PER_DAY).cast("int"))


def run(spark: SparkSession, inputs: Sequence[str], output: str) -> IngestCounts:
    """Ingest files into the tables under `output`; may be repeated, but not run twice at once."""
    for warning in large_gzips(spark, inputs):
        click.echo(f"warning: {warning}", err=True)
    with counting(spark):
        slots = {SLOT: sf.bitmap_construct_agg(sf.col(SLOT))}
        quick = read_quickly(spark, inputs)
        added, first = _append_events(quick, output, _numbers("events", LEFT) | slots)
        strict = dict.fromkeys(DESTINATIONS, 0)
        new_observations = 0
        if first[LEFT]:
            parsed = read_strictly(spark, inputs, first[SLOT])
            rows = parsed.select("event.*", "goes_to")
            late, strict = _append_events(rows, output, _numbers(*DESTINATIONS))
            added += late
            if strict["observations"]:
                frame = _read_observations(spark, inputs)
                new_observations = _append(frame, output, "observations", OBSERVATION_PARTITIONS)
            if strict["quarantine"]:
                _append(quarantine(parsed), output, "quarantine", ())
    # Some lines of the second pass were already counted in the first; observations and misfits never are.
    lines = first["events"] + first[LEFT]
    return IngestCounts(
        lines=lines,
        events=added,
        observations=new_observations,
        quarantined=strict["quarantine"],
        duplicates=lines - strict["quarantine"] - added - new_observations,
    )


def _numbers(*names: str) -> dict[str, Column]:
    """Return a count of rows for each of these destinations."""
    return {name: sf.count_if(sf.col("goes_to") == name) for name in names}


def _append_events(read: DataFrame, output: str, counts: Mapping[str, Column]) -> tuple[int, dict[str, Any]]:
    """Append the events that the table does not contain yet; return their number, and the `counts` of all rows."""
    known = tables.read_or_none(read.sparkSession, output, "events")
    if known is not None:
        known = known_events(known, read)
    seen = Counted(read, counts)
    new = tables.without(events(seen.frame), known)
    added = tables.append_new(new, output, "events", tables.EVENT_PARTITIONS, gathered=known is None)
    return added, seen.counts()


def _append(frame: DataFrame, output: str, table: str, partitions: Sequence[str]) -> int:
    """Append the rows that a small table does not contain yet; return their number."""
    known = tables.read_or_none(frame.sparkSession, output, table)
    return tables.append_new(tables.without(frame, known), output, table, partitions)

"""Report: the tables as one HTML page with charts.

Spark aggregates first; the driver gets only the drawn values. A section whose table does not exist yet names
the job that writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf

from broker_sim_integration.pipeline.errors import PipelineError
from broker_sim_integration.pipeline.report import charts
from broker_sim_integration.pipeline.report.page import Section, Table, render
from broker_sim_integration.pipeline.spark import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession

REPORT: Final = "report.html"
TIME_BINS: Final = 240
BINS_PER_DECADE: Final = 16
SHOWN_KEYS: Final = 14
SHOWN_ROWS: Final = 25
SHOWN_SETTINGS: Final = 12


@dataclass(frozen=True, slots=True)
class _Source:
    spark: SparkSession
    directory: str
    frames: dict[str, DataFrame | None] = field(default_factory=dict)

    def table(self, name: str) -> DataFrame | None:
        """Return a table, or None if it does not exist; looking for its files, a job of Spark, happens only once."""
        if name not in self.frames:
            self.frames[name] = tables.read_or_none(self.spark, self.directory, name)
        return self.frames[name]


def run(spark: SparkSession, directory: str, output: str) -> str:
    """Write the page to `output`, an HTML file or a directory; return its path and the number of charts."""
    path = Path(output) if output.endswith(".html") else Path(output) / REPORT
    source = _Source(spark, directory)
    topics = (_parity, _latency, _occupancy, _health, _sweep, _chaos)
    sections = [section for make in topics for section in make(source)]
    sections.sort(key=lambda section: not section.is_filled)  # filled sections come first
    if not any(section.is_filled for section in sections):
        raise PipelineError(f"{directory} has no table to report on: run ingest and lifecycle first")
    page = render("Waiting in the broker", _facts(source), sections)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{error}: choose another --output") from error
    drawn = sum(bool(section.picture) for section in sections)
    return f"{path} with {drawn} pictures"


def _facts(source: _Source) -> dict[str, str]:
    lives = source.table("lifecycles")
    if lives is None:
        return {}
    row = lives.agg(
        sf.count("*").alias("operations"),
        sf.sum(sf.col("tried") + sf.col("parked") + sf.col("ended")).alias("events"),
        sf.count_distinct("run_id").alias("runs"),
        sf.min("tried_at_ms").alias("from_ms"),
        sf.max(sf.greatest("tried_at_ms", "parked_at_ms", "ended_at_ms")).alias("to_ms"),
    ).first()
    if row is None or row["from_ms"] is None:
        return {}
    return {
        "operations": f"{row['operations']:,}",
        "events": f"{row['events']:,}",
        "runs": str(row["runs"]),
        "observed": f"{(row['to_ms'] - row['from_ms']) / 1000:,.1f} s",
    }


def _missing(title: str, job: str) -> list[Section]:
    return [Section(title, f"Nothing to show: the job <code>{job}</code> has not run.")]


# -- latency ------------------------------------------------------------------------------------


def _latency(source: _Source) -> list[Section]:
    title = "How long operations waited"
    lives, groups = source.table("lifecycles"), source.table("latency")
    if lives is None or groups is None:
        return _missing(title, "latency")
    waited = lives.where(~sf.col("outcome").isin("open", "immediate"))
    step = sf.floor(sf.log10(sf.col("waited_ms") + 1) * BINS_PER_DECADE)
    counted = (
        waited.groupBy("side", "purgatory", "outcome", step.alias("step"))
        .agg(sf.max("waited_ms").alias("up_to_ms"), sf.count("*").alias("operations"))
        .orderBy("side", "purgatory", "outcome", "step")
        .collect()
    )
    totals = groups.where(sf.col("minute").isNull()).orderBy(sf.desc("operations")).limit(SHOWN_ROWS).collect()
    columns = [
        "side", "purgatory", "outcome", "api", "operations", "waited_p50_ms", "waited_p95_ms",
        "waited_p99_ms", "waited_p999_ms", "waited_max_ms", "lateness_p50_ms", "lateness_p99_ms",
        "lateness_max_ms",
    ]  # fmt: skip
    return [
        Section(
            title,
            "Share of the parked operations that had ended after so long, by purgatory and by how they "
            "ended. A step at a timeout is operations that expired.",
            picture=charts.waiting(counted) if counted else None,
            table=Table.of_rows(columns, totals),
        )
    ]


# -- occupancy ----------------------------------------------------------------------------------


def _bins(buckets: DataFrame) -> tuple[int, Column]:
    """Return the width in ms of a bin of the charts, and the bin number of a row."""
    span = buckets.agg(sf.min("bucket_start_ms").alias("first"), sf.max("bucket_start_ms").alias("last")).first()
    assert span is not None
    first = int(span["first"] or 0)
    width_ms = max(1000, -(-(int(span["last"] or 0) - first + 1) // TIME_BINS))
    return width_ms, sf.floor((sf.col("bucket_start_ms") - first) / width_ms)


def _series(buckets: DataFrame, names: Sequence[str], bin_number: Column) -> list[Row]:
    return (
        buckets.groupBy(*names, bin_number.alias("bin"))
        .agg(sf.max("peak").alias("peak"), sf.max_by("closing", "bucket_start_ms").alias("closing"))
        .orderBy(*names, "bin")
        .collect()
    )


def _occupancy(source: _Source) -> list[Section]:
    title = "How many operations were parked"
    buckets = source.table("occupancy")
    if buckets is None:
        return _missing(title, "occupancy")
    width_ms, bin_number = _bins(buckets)
    whole = buckets.where(sf.col("key").isNull())
    rows = _series(whole, ["purgatory", "side", "broker"], bin_number)
    return [
        Section(
            title,
            f"The most that were parked at once, in steps of {width_ms / 1000:g} s, by purgatory and broker.",
            picture=charts.occupancy(rows, width_ms) if rows else None,
        ),
        *_keys(source, buckets, width_ms, bin_number),
    ]


def _keys(source: _Source, buckets: DataFrame, width_ms: int, bin_number: Column) -> list[Section]:
    title = "The busiest keys"
    summary = source.table("occupancy_summary")
    if summary is None:
        return _missing(title, "occupancy")
    hottest = (
        summary.where(sf.col("key").isNotNull())
        .orderBy(sf.desc("parked_ms"), "purgatory", "key", "broker")
        .limit(SHOWN_KEYS)
    )
    top = hottest.collect()
    names = ["run_id", "side", "purgatory", "broker", "key"]
    of_hottest = buckets.join(sf.broadcast(hottest.select(*names)), names, "semi")
    rows = _series(of_hottest, names, bin_number)
    columns = ["side", "purgatory", "broker", "key", "peak", "mean", "parked_ms"]
    return [
        Section(
            title,
            "The keys under which most time was spent waiting, and how many operations were parked under each.",
            picture=charts.timeline(top, rows, width_ms) if rows else None,
            table=Table.of_rows(columns, top),
        )
    ]


# -- correctness --------------------------------------------------------------------------------


def _health(source: _Source) -> list[Section]:
    broken, bad = source.table("broken_lifecycles"), source.table("quarantine")
    if broken is None:
        return _missing("Broken lifecycles", "lifecycle")
    kinds = (
        broken.select("side", "purgatory", sf.explode("problems").alias("problem"))
        .groupBy("side", "purgatory", "problem")
        .agg(sf.count("*").alias("operations"))
        .orderBy(sf.desc("operations"))
        .limit(SHOWN_ROWS)
        .collect()
    )
    sections = [
        Section(
            "Broken lifecycles",
            "Operations whose events are not possible in a correct purgatory."
            if kinds
            else "None: every operation was tried once, parked at most once, and ended once.",
            table=Table.of_rows(["side", "purgatory", "problem", "operations"], kinds),
        )
    ]
    if bad is not None:
        reasons = (
            bad.groupBy("reason")
            .agg(sf.sum("times").alias("lines"), sf.min("source").alias("first source"))
            .orderBy(sf.desc("lines"))
            .limit(SHOWN_ROWS)
            .collect()
        )
        sections.append(
            Section(
                "Quarantine",
                "Lines that do not fit the contract.",
                table=Table.of_rows(["reason", "lines", "first source"], reasons),
            )
        )
    return sections


# -- parity, sweep and chaos ---------------------------------------------------------------------------


def _parity(source: _Source) -> list[Section]:
    title = "The simulator compared with a real Kafka"
    scenarios, timing = source.table("parity_scenarios"), source.table("parity_timing")
    observations = source.table("observations")
    if scenarios is None or timing is None or observations is None:
        return _missing(title, "parity")
    lateness = sf.floor(sf.col("elapsed_ms") - sf.col("due_ms"))
    counted = (
        observations.where(sf.col("timing") != "untimed")
        .groupBy("timing", "side", lateness.alias("up_to_ms"))
        .agg(sf.count("*").alias("operations"))
        .orderBy("timing", "side", "up_to_ms")
        .collect()
    )
    rows = scenarios.orderBy("agreement", "scenario").collect()
    columns = [
        "scenario", "steps", "agreed", "agreement", "differs_in", "elapsed_delta_p50_ms",
        "elapsed_delta_max_ms",
    ]  # fmt: skip
    families = timing.orderBy("timing").collect()
    return [
        Section(
            title,
            "How late responses came on each side, by what they waited for, and the "
            "Kolmogorov-Smirnov distance between the sides.",
            picture=charts.lateness(counted) if counted else None,
            table=Table.of_rows(["timing", "kafka", "sim", "ks_distance", "critical", "same"], families),
        ),
        Section(
            "Agreement by scenario",
            "Least agreement first; times are the simulator's less the real broker's.",
            table=Table.of_rows(columns, rows),
        ),
    ]


def _sweep(source: _Source) -> list[Section]:
    title = "How often acks=all would time out"
    summary = source.table("sweep_summary")
    if summary is None:
        return _missing(title, "sweep")
    from broker_sim_integration.pipeline.jobs.sweep import SETTINGS_SCHEMA  # noqa: PLC0415 - it imports the simulator

    settings = [name for name in SETTINGS_SCHEMA.names if name != "seed"]
    counts = summary.agg(*[sf.count_distinct(name).alias(name) for name in settings]).first()
    assert counts is not None
    varying = sorted((n for n in settings if counts[n] > 1), key=lambda n: -counts[n])
    axes = [*varying, *[name for name in settings if name not in varying]][:3]
    if not varying or counts[axes[0]] > SHOWN_ROWS:
        return [_sweep_table(title, summary, varying)]
    cells = (
        summary.groupBy(*axes)
        .agg(sf.try_divide(sf.sum("timed_out"), sf.sum("requests")).alias("share"), sf.sum("runs").alias("runs"))
        .collect()
    )
    section = _sweep_table(title, summary, varying)
    return [Section(section.title, section.text, picture=charts.heat_map(cells, axes), table=section.table)]


def _sweep_table(title: str, summary: DataFrame, varying: Sequence[str]) -> Section:
    rows = summary.orderBy(sf.desc("timed_out_share")).limit(SHOWN_SETTINGS).collect()
    columns = [*varying, "runs", "requests", "timed_out_share", "refused_share", "waited_max_ms"]
    return Section(
        title,
        "Share of produce requests that timed out, simulated in virtual time; the worst settings are listed.",
        table=Table.of_rows(columns, rows),
    )


def _chaos(source: _Source) -> list[Section]:
    title = "Seeds under which an application fails"
    summary, failures = source.table("chaos_summary"), source.table("chaos_failures")
    row = None if summary is None else summary.first()
    if row is None or failures is None:
        return _missing(title, "chaos")
    worst = failures.orderBy(sf.desc("failed_seeds"), "invariant", "faults", "kinds")
    columns = ["invariant", "failed_seeds", "kinds", "examined", "faults", "schedule", "seed", "repeats"]
    return [
        Section(
            title,
            f"{escape(row['test'])}: {row['failed']:,} of {row['seeds']:,} seeds failed, at "
            f"{row['seeds_per_s_and_core']:.1f} seeds a second and core. For each set of kinds that breaks an "
            "invariant the smallest schedule; <code>broker-sim chaos --schedule</code> runs it again.",
            table=Table.of_rows(columns, worst.limit(SHOWN_ROWS).collect()),
        )
    ]

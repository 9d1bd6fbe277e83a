"""Lifecycle: one row per delayed operation from its events, and the broken ones.

An operation is tried, perhaps parked, and ends once. On a large trace that checks the broker: a purgatory that
loses an operation, or completes one twice, is visible here.

    run_id side broker purgatory operation_id | api client_id keys delay_ms
    tried_at_ms parked_at_ms ended_at_ms | outcome completed_by error_code waited_ms lateness_ms
    tried parked ended (number of events of each kind)

`outcome`: immediate (never waited), completed, expired, cancelled, or open (not ended so far).
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf

from broker_sim_integration.pipeline.jobs.schema import ENDINGS
from broker_sim_integration.pipeline.spark import tables
from broker_sim_integration.pipeline.spark.counting import Counted, counting

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RUN: Final = ("run_id", "side")
OPERATION: Final = (*RUN, "broker", "purgatory", "operation_id")
"""The key of an operation."""

GROUPED: Final = ("operation_id", "broker", "purgatory", *RUN)
"""The same key in the order for grouping: rows are sorted by it, and Spark compares the first eight bytes
without looking at the row. Those of a run's name would be the same everywhere.
"""

GRACE_MS: Final = 60_000
"""Time in ms after its deadline for which an operation may be open: a paused broker expires nothing."""

PARTITIONS: Final = ("side", "purgatory")


def lifecycles(events: DataFrame) -> DataFrame:
    """Return one row per operation; of several ends the first counts."""
    event = sf.col("event")
    is_end = event.isin(*ENDINGS)
    facts = sf.struct("ts_ms", "api", "client_id", "keys", "delay_ms")
    end = sf.struct("ts_ms", "event", "completed_by", "error_code", "waited_ms", "lateness_ms")
    grouped = events.groupBy(*GROUPED).agg(
        sf.min(facts).alias("facts"),
        sf.min(sf.when(event == "tried", sf.col("ts_ms"))).alias("tried_at_ms"),
        sf.min(sf.when(event == "parked", sf.col("ts_ms"))).alias("parked_at_ms"),
        sf.min(sf.when(is_end, end)).alias("end"),
        sf.count_if(event == "tried").alias("tried"),
        sf.count_if(event == "parked").alias("parked"),
        sf.count_if(is_end).alias("ended"),
    )
    return grouped.select(
        *OPERATION,
        "facts.api",
        "facts.client_id",
        "facts.keys",
        "facts.delay_ms",
        "tried_at_ms",
        "parked_at_ms",
        sf.col("end.ts_ms").alias("ended_at_ms"),
        _outcome().alias("outcome"),
        "end.completed_by",
        "end.error_code",
        "end.waited_ms",
        "end.lateness_ms",
        "tried",
        "parked",
        "ended",
    )


def _outcome() -> Column:
    return (
        sf.when(sf.col("end").isNull(), "open")
        .when(sf.col("end.completed_by") == "immediate", "immediate")
        .otherwise(sf.col("end.event"))
    )


def run_spans(events: DataFrame) -> DataFrame:
    """Return the times of the first and the last event of each run: from_ms, to_ms."""
    return events.groupBy(*RUN).agg(sf.min("ts_ms").alias("from_ms"), sf.max("ts_ms").alias("to_ms"))


def broken_lifecycles(lives: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the operations whose events are not possible in a correct purgatory, with `problems`.

    An open one is broken only if its run continued for more than `GRACE_MS` after its deadline.
    """
    named = [sf.when(is_so, name) for name, is_so in _problems(sf.col("to_ms")).items()]
    return (
        lives.join(sf.broadcast(spans), [*RUN], "inner")
        .withColumn("problems", sf.array_compact(sf.array(*named)))
        .where(sf.size("problems") > 0)
        .select(*lives.columns, "problems")
    )


def _problems(run_end_ms: Column) -> dict[str, Column]:
    """Return the condition of each problem of an operation, by name."""
    parked_at, ended_at = sf.col("parked_at_ms"), sf.col("ended_at_ms")
    overdue = (sf.col("ended") == 0) & (_deadline_ms() + GRACE_MS < run_end_ms)
    return {
        "never tried": sf.col("tried") == 0,
        "tried twice": sf.col("tried") > 1,
        "parked twice": sf.col("parked") > 1,
        "ended twice": sf.col("ended") > 1,
        "parked and never ended": overdue & parked_at.isNotNull(),
        "tried and never ended": overdue & parked_at.isNull(),
        "ended before it began": ended_at < sf.coalesce(parked_at, "tried_at_ms"),
        "parked before it was tried": parked_at < sf.col("tried_at_ms"),
        "parked and immediate": (sf.col("outcome") == "immediate") & (sf.col("parked") > 0),
        "expired too early": sf.col("lateness_ms") < 0,
    }


def _deadline_ms() -> Column:
    return sf.coalesce(sf.col("parked_at_ms") + sf.col("delay_ms"), "tried_at_ms")


def _signs() -> dict[str, Column]:
    """Return columns of an operation whose aggregates show whether any operation may be broken."""
    unknown = sf.lit(None).cast("bigint")
    return {
        "is_broken": reduce(or_, _problems(run_end_ms=unknown).values()),
        "open_deadline_ms": sf.when(sf.col("ended") == 0, _deadline_ms()),
        "last_ms": sf.greatest("tried_at_ms", "parked_at_ms", "ended_at_ms"),
    }


def run(spark: SparkSession, directory: str, output: str) -> str:
    """Write `lifecycles` and `broken_lifecycles` from the table `events`.

    The aggregates collected while `lifecycles` is written show whether it has to be read again to find broken
    operations. Each step of an unbroken operation is one of its three times, so without broken ones `last_ms` is
    the end of the last run.
    """
    events = tables.read(spark, directory, "events")
    lives = lifecycles(events)
    with counting(spark):
        seen = Counted(
            # As separate columns, because Spark compiles these, but not the expressions that it counts.
            lives.withColumns(_signs()),
            {
                "operations": sf.count("*"),
                "broken": sf.count_if("is_broken"),
                "first_deadline_ms": sf.min("open_deadline_ms"),
                "last_ms": sf.max("last_ms"),
            },
        )
        written = tables.overwrite(seen.frame.select(*lives.columns), output, "lifecycles", PARTITIONS)
        counts = seen.counts()
    broken = broken_lifecycles(written, run_spans(events))
    deadline_ms = counts["first_deadline_ms"]
    overdue = deadline_ms is not None and deadline_ms + GRACE_MS < counts["last_ms"]
    may_be_broken = counts["broken"] or overdue
    broken = tables.overwrite(broken if may_be_broken else broken.limit(0), output, "broken_lifecycles")
    return f"{counts['operations']} lifecycles, {broken.count() if may_be_broken else 0} of them broken"

"""Stream: latency and occupancy while the cluster runs, from a Kafka topic of trace events.

Three queries, each with its own checkpoint, append to tables:

- `live_latency`: per window, side, purgatory, outcome and API: count and percentiles of waiting;
- `live_occupancy`: per window and purgatory of a broker: the number of parked operations, the number of those
  that ended, and the maximum number in its timer;
- `live_quarantine`: records that do not fit the contract.

A window is written by the first batch after the watermark has passed its end. Offsets, state and output are
committed together, so a stopped stream continues without loss or double count. A repeated event counts once. An
event after the watermark is not counted, but reported.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyspark.sql.functions as sf
from pyspark.errors import AnalysisException, StreamingQueryException

from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.pipeline.errors import PipelineError
from broker_sim_integration.pipeline.jobs.ingest import quarantine_rows
from broker_sim_integration.pipeline.jobs.lifecycle import OPERATION
from broker_sim_integration.pipeline.jobs.schema import ENDINGS, parse
from broker_sim_integration.pipeline.spark import driver
from broker_sim_integration.pipeline.spark.session import KAFKA_CONNECTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
ACCURACY: Final = 10_000
POLL_S: Final = 1
CONNECT_S: Final = 5
LAST_PORT: Final = 65_535
TERMINATED: Final = re.compile(r"\A\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
OCCUPANCY: Final = "live_occupancy"


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The source of the events, and their windows."""

    bootstrap_servers: str
    topic: str
    window: str = "1 minute"
    watermark: str = "30 seconds"
    """Maximum lateness of an event."""
    trigger: str = "5 seconds"
    available_now: bool = False
    """Process the present records of the topic, then end."""
    max_offsets_per_trigger: int | None = None


def kafka_lines(spark: SparkSession, settings: StreamSettings) -> DataFrame:
    """Return the topic's records as lines, from its beginning; raise PipelineError."""
    _require_broker(settings.bootstrap_servers)
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap_servers)
        .option("subscribe", settings.topic)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
    )
    if settings.max_offsets_per_trigger is not None:
        reader = reader.option("maxOffsetsPerTrigger", settings.max_offsets_per_trigger)
    try:
        records = reader.load()
    except AnalysisException as error:
        if "kafka" in str(error).lower():
            raise PipelineError(
                f"this Spark has no Kafka connector: add --conf spark.jars.packages={KAFKA_CONNECTOR}"
                " (spark-submit: --packages)"
            ) from error
        raise
    return records.select(
        sf.concat_ws("@", sf.concat_ws("-", "topic", "partition"), "offset").alias("source"),
        sf.col("value").cast("string").alias("line"),
    )


def _require_broker(bootstrap_servers: str) -> None:
    """Raise PipelineError unless a broker listens: Spark itself would retry for minutes."""
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not (host and port.isdecimal() and int(port) <= LAST_PORT):
            raise PipelineError(f"{server}: give the cluster as HOST:PORT,HOST:PORT")
        with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), CONNECT_S):
            return
    raise PipelineError(f"no broker listens at {bootstrap_servers}: is the cluster running?")


def live_events(parsed: DataFrame, watermark: str) -> DataFrame:
    """Return the events among parsed lines, each once, with their `time` and watermark."""
    return (
        parsed.where(sf.col("goes_to") == "events")
        .select("event.*", sf.timestamp_millis("event.ts_ms").alias("time"))
        .withWatermark("time", watermark)
        .dropDuplicates([*OPERATION, "event", "time"])
    )


def live_latency(events: DataFrame, window: str) -> DataFrame:
    """Return count, approximate percentiles and maximum of waiting per window and group."""
    ended = events.where(sf.col("event").isin(*ENDINGS))
    outcome = sf.when(sf.col("completed_by") == "immediate", "immediate").otherwise(sf.col("event"))
    shares = sf.array(*map(sf.lit, PERCENTILES.values()))
    return (
        ended.groupBy(sf.window("time", window), "side", "purgatory", outcome.alias("outcome"), "api")
        .agg(
            sf.count("*").alias("operations"),
            sf.percentile_approx("waited_ms", shares, ACCURACY).alias("waited"),
            sf.max("waited_ms").alias("waited_max_ms"),
            sf.max("lateness_ms").alias("lateness_max_ms"),
        )
        .select(
            "window.start",
            "window.end",
            "side",
            "purgatory",
            "outcome",
            "api",
            "operations",
            *[sf.col("waited")[position].alias(f"waited_{name}_ms") for position, name in enumerate(PERCENTILES)],
            "waited_max_ms",
            "lateness_max_ms",
        )
    )


def live_occupancy(events: DataFrame, window: str) -> DataFrame:
    """Return the number of parked operations, and of those that ended, per window and purgatory."""
    is_end = sf.col("event").isin(*ENDINGS)
    immediate = sf.col("completed_by").eqNullSafe("immediate")
    return (
        events.groupBy(sf.window("time", window), "run_id", "side", "broker", "purgatory")
        .agg(
            sf.count("*").alias("events"),
            sf.count_if(sf.col("event") == "parked").alias("parked"),
            sf.count_if(is_end & ~immediate).alias("ended"),
            sf.max("num_delayed").alias("num_delayed_max"),
            sf.max("watched").alias("watched_max"),
        )
        .select(
            "window.start",
            "window.end",
            "run_id",
            "side",
            "broker",
            "purgatory",
            "events",
            "parked",
            "ended",
            "num_delayed_max",
            "watched_max",
        )
    )


def start_queries(spark: SparkSession, settings: StreamSettings, output: str) -> list[StreamingQuery]:
    """Start the three queries, each from its checkpoint if it has one; raise PipelineError."""
    parsed = parse(kafka_lines(spark, settings))
    events = live_events(parsed, settings.watermark)
    frames = {
        "live_latency": live_latency(events, settings.window),
        OCCUPANCY: live_occupancy(events, settings.window),
        "live_quarantine": quarantine_rows(parsed),
    }
    return [_start(frame, name, settings, output) for name, frame in frames.items()]


def _start(frame: DataFrame, name: str, settings: StreamSettings, output: str) -> StreamingQuery:
    writer = (
        frame.writeStream.queryName(name)
        .format("parquet")
        .outputMode("append")
        .option("path", f"{output}/{name}")
        .option("checkpointLocation", f"{output}/checkpoints/{name}")
    )
    if settings.available_now:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=settings.trigger).start()


class LateEvents:
    """Counts the events after the watermark, so that they are not lost silently.

    The count comes from the query that reads every event. Its progress is polled: a listener would be called some
    time after the batch, perhaps after the end.
    """

    def __init__(self, queries: Sequence[StreamingQuery]) -> None:
        (self._query,) = [query for query in queries if query.name == OCCUPANCY]
        self._by_batch: dict[int, int] = {}

    def count(self) -> int:
        """Return the number of late events; must be called before the query discards its last 100 batches."""
        for progress in self._query.recentProgress:
            if dropped := sum(state.numRowsDroppedByWatermark for state in progress.stateOperators):
                self._by_batch[progress.batchId] = dropped
        return sum(self._by_batch.values())


def run(spark: SparkSession, settings: StreamSettings, output: str, for_s: int | None = None) -> str:
    """Run until the topic is read (`available_now`), for `for_s` seconds, or until interrupted; return a summary."""
    queries = start_queries(spark, settings, output)
    late = LateEvents(queries)
    try:
        _wait(queries, late, for_s)
    except StreamingQueryException as error:
        raise PipelineError(why_ended(settings, str(error))) from error
    finally:
        # Stopping in the middle of a batch is allowed, but Spark logs errors for it.
        driver.log_level(spark, "OFF")
        for query in queries:
            query.stop()
        driver.log_level(spark)
    return f"{late.count()} events came too late for their window"


def why_ended(settings: StreamSettings, error: str) -> str:
    """Return the message for a stream that ended with `error` of Spark."""
    if "UnknownTopicOrPartitionException" in error:
        return (
            f"unknown topic {settings.topic} at {settings.bootstrap_servers}: start the cluster "
            f"with --trace-topic {settings.topic}, or pass its topic by --topic"
        )
    # awaitTermination puts Spark's own words before the cause; the query's exception does not have them.
    reason = TERMINATED.sub("", error).splitlines()[0]
    return f"the stream from topic {settings.topic} ended: {reason}"


def _wait(queries: Sequence[StreamingQuery], late: LateEvents, for_s: int | None) -> None:
    """Wait until all queries have ended, or for `for_s` seconds; raise the exception of a failed one."""
    ends_ms = None if for_s is None else now_ms() + for_s * 1_000
    while running := [query for query in queries if query.isActive]:
        if ends_ms is not None and now_ms() >= ends_ms:
            break
        running[0].awaitTermination(POLL_S)
        late.count()
        _raise_failure(queries)
    _raise_failure(queries)


def _raise_failure(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        if error := query.exception():
            raise error

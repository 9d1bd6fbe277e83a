"""The live tables, read by Spark's Kafka connector from topics of the simulator."""

import json
import re
import socket

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.clients]

T = 1_700_000_000_000
HOUR_MS = 3_600_000
TOPIC = "trace"
TRACED_MS = 2_500
PAUSE_S = 0.05
"""Between batches of records, so that the load costs less than the stream that reads its trace."""
WINDOW = "200 milliseconds"


@pytest.fixture
def cluster():
    from broker_sim.cluster.cluster import Cluster

    # A producer that lives asks for its topic, and would make it again when it has been deleted.
    with Cluster(brokers=1, configs={"auto.create.topics.enable": False}) as running:
        running.create_topic(TOPIC, 2, 1)
        yield running


@pytest.fixture
def send(cluster):
    """Return a function that writes rows into the topic, each as one record."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})

    def write(rows):
        for number, row in enumerate(rows):
            value = row if isinstance(row, str) else json.dumps(row)
            producer.produce(TOPIC, value.encode(), partition=number % 2)
        assert producer.flush(30) == 0

    return write


@pytest.fixture
def settings(cluster):
    from broker_sim_integration.pipeline.jobs.stream import StreamSettings

    return lambda **options: StreamSettings(
        cluster.bootstrap_servers,
        TOPIC,
        **{"window": "10 seconds", "watermark": "20 seconds", "trigger": "0 seconds", **options},
    )


def _operations(life, first, count):
    return [
        event
        for number in range(first, first + count)
        for event in life(number, T + number * 100, T + number * 100 + 50)
    ]


@pytest.mark.soak(part="spark")
def test_a_stream_that_is_stopped_and_started_loses_nothing_and_counts_nothing_twice(
    spark, tmp_path, send, settings, life, event
):
    from broker_sim_integration.pipeline.jobs.stream import run, start_queries

    out = str(tmp_path)
    first = _operations(life, 0, 100)
    send([*first, "not an event", *first[:30]])
    small = settings(max_offsets_per_trigger=60)
    queries = start_queries(spark, small, out)
    for query in queries:
        while query.lastProgress is None:
            assert not query.awaitTermination(1), query.exception()
        query.stop()
    send([*_operations(life, 100, 60), *first[30:60]])
    run(spark, settings(available_now=True), out)
    for hours in (1, 2):
        send([event(operation_id=9_000 + hours, ts_ms=T + hours * HOUR_MS)])
        run(spark, settings(available_now=True), out)
    latency = spark.read.parquet(f"{out}/live_latency").collect()
    assert sum(row.operations for row in latency) == 160
    assert {row.waited_p50_ms for row in latency} == {50}
    assert {row.outcome for row in latency} == {"completed"}
    windows = {row.start: (row.parked, row.ended) for row in _occupancy(spark, out)}
    assert len(windows) == len(_occupancy(spark, out)) == 2, "one row per window, once"
    assert tuple(map(sum, zip(*windows.values(), strict=True))) == (160, 160)
    (bad,) = spark.read.parquet(f"{out}/live_quarantine").collect()
    assert (bad.line, bad.reason) == ("not an event", "not one JSON object")
    assert bad.source.startswith("trace-")


def _occupancy(spark, out):
    rows = spark.read.parquet(f"{out}/live_occupancy").collect()
    return [row for row in rows if row.parked]


@pytest.mark.soak(part="spark")
def test_late_events_are_counted_and_reported(spark, tmp_path, send, settings, life, event):
    from broker_sim_integration.pipeline.jobs.stream import run

    out = str(tmp_path)
    send([event(operation_id=1, ts_ms=T + HOUR_MS)])
    run(spark, settings(available_now=True), out)
    send([event(operation_id=2, ts_ms=T)])
    answer = run(spark, settings(available_now=True), out)
    assert answer == "1 events came too late for their window"


def test_the_trace_of_a_running_cluster_is_the_same_live_and_from_its_file(spark, tmp_path):
    import pyspark.sql.functions as sf
    from broker_sim_integration.clients.stopwatch import now_ms
    from broker_sim_integration.pipeline.jobs import ingest
    from broker_sim_integration.pipeline.jobs.stream import StreamSettings, run
    from broker_sim_integration.pipeline.load import TRACE_TOPIC, running_cluster, traced_events
    from confluent_kafka import Producer

    trace, out = tmp_path / "trace.jsonl", str(tmp_path / "out")
    with running_cluster(trace) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
        enough_ms = now_ms() + TRACED_MS
        while now_ms() < enough_ms or traced_events(cluster) < 2_000:
            for _ in range(50):
                producer.produce("orders", b"x" * 100, partition=0)
                producer.flush(30)
            producer.poll(PAUSE_S)
        settings = StreamSettings(
            cluster.bootstrap_servers, TRACE_TOPIC, window=WINDOW, watermark="1500 milliseconds", available_now=True
        )
        for _ in range(2):
            # The second run has a watermark, so that windows close; followers always produce events.
            answer = run(spark, settings, out)
            assert answer == "0 events came too late for their window"
    counts = ingest.run(spark, [str(trace)], out)
    assert counts.quarantined == counts.duplicates == 0
    live = spark.read.parquet(f"{out}/live_occupancy").groupBy("start").sum("events")
    from_file = spark.read.parquet(f"{out}/events").groupBy(
        sf.window(sf.timestamp_millis("ts_ms"), WINDOW).start.alias("start")
    )
    found = dict(live.collect())
    expected = {start: count for start, count in from_file.count().collect() if start <= max(found)}
    assert len(found) > 3
    assert found == expected


@pytest.mark.parametrize(
    ("servers", "why"),
    [
        ("127.0.0.1:{free}", "no broker listens at 127.0.0.1:{free}: is the cluster running?"),
        ("localhost", "localhost: give the cluster as HOST:PORT"),
        ("127.0.0.1:x", "127.0.0.1:x: give the cluster as HOST:PORT"),
        ("127.0.0.1:99999", "127.0.0.1:99999: give the cluster as HOST:PORT"),
    ],
)
def test_wrong_address_fails_at_once(spark, tmp_path, servers, why):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.jobs.stream import StreamSettings, run

    with socket.socket() as probe:
        # Bound and not listening, so that no other program gets the port meanwhile.
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
        settings = StreamSettings(servers.format(free=free), TOPIC, available_now=True)
        with pytest.raises(PipelineError, match=re.escape(why.format(free=free))):
            run(spark, settings, str(tmp_path))


@pytest.mark.soak(part="spark")
def test_a_topic_that_is_not_there_is_named(spark, tmp_path, cluster):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.jobs.stream import StreamSettings, run

    settings = StreamSettings(cluster.bootstrap_servers, "absent", available_now=True)
    there = re.escape(f"unknown topic absent at {cluster.bootstrap_servers}: start")
    with pytest.raises(PipelineError, match=there):
        run(spark, settings, str(tmp_path))


@pytest.mark.parametrize(
    "told_by_spark",
    [
        "[STREAM_FAILED] Query [id = 1a, runId = 2b] terminated with exception: No space left\nat A",
        "No space left\n=== Streaming Query ===\nIdentifier: live",
    ],
)
def test_reason_is_the_same_in_both_forms_of_sparks_text(settings, told_by_spark):
    from broker_sim_integration.pipeline.jobs.stream import why_ended

    reason = "the stream from topic trace ended: No space left"
    assert why_ended(settings(available_now=True), told_by_spark) == reason


@pytest.mark.soak(part="spark")
def test_error_of_a_failed_stream_is_one_line_with_the_reason(spark, tmp_path, cluster, send, settings, life):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.jobs.stream import run
    from confluent_kafka.admin import AdminClient

    send(_operations(life, 0, 10))
    run(spark, settings(available_now=True), str(tmp_path))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([TOPIC])[TOPIC].result(30)
    cluster.create_topic(TOPIC, 2, 1)
    with pytest.raises(
        PipelineError, match="the stream from topic trace ended: Some data may have been lost"
    ) as raised:
        run(spark, settings(available_now=True), str(tmp_path))
    assert "\n" not in str(raised.value)

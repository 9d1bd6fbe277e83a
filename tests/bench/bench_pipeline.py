"""The pipeline on millions of events beside pandas and DuckDB, and what tracing costs a broker.

The same answers are computed three times and must be equal. Spark runs with a limit on what tasks
may send to the driver that is far below the size of the data: nothing data-sized is collected.
``PIPELINE_EVENTS`` in the environment sets another number of events.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from options import Options
from pipeline_data import write_trace
from pipeline_peers import PERCENTILES, Answers, Stopwatch, with_duckdb, with_pandas
from report import OURS, Report

SUITE = "pipeline"
EVENTS = 5_000_000
CORES = os.cpu_count() or 1
DRIVER_MEMORY = "2g"
MOST_RESULTS = "16m"
MESSAGES = {"one message a request, acks=all": 3_000, "batches, acks=all": 100_000}
TRACES = {"without": (), "file": ("--trace",), "topic": ("--trace-topic", "trace")}


def run(options: Options, report: Report) -> None:
    """Measure both."""
    _tracing(options, report)
    missing = [name for name in ("pyspark", "pandas", "duckdb") if find_spec(name) is None]
    if missing:
        report.say(f"without the pipeline: pip install {' '.join(missing)}")
    else:
        _throughput(report)
    report.print_suite(SUITE)


def _throughput(report: Report) -> None:
    events = int(os.environ.get("PIPELINE_EVENTS", EVENTS))
    directory = Path(tempfile.mkdtemp(prefix="bench-pipeline-"))
    try:
        trace = directory / "trace.jsonl"
        write_trace(trace, events)
        report.say(f"{events:,} events, {trace.stat().st_size / 1e9:.2f} GB of JSON, {CORES} cores")
        found = {
            OURS: _with_spark(str(trace), directory),
            "DuckDB": with_duckdb(str(trace)),
            "pandas": with_pandas(str(trace)),
        }
    finally:
        shutil.rmtree(directory)
    ours = found[OURS]
    for name, answers in found.items():
        _must_agree(name, ours, answers)
        for step, seconds in answers.seconds.items():
            report.add(SUITE, step, "s", name, seconds, lower=True)
        report.add(SUITE, "all steps", "s", name, answers.total_s, lower=True)
        report.add(SUITE, "all steps, events", "1/s", name, events / answers.total_s)


def _must_agree(name: str, ours: Answers, theirs: Answers) -> None:
    assert theirs.operations == ours.operations, name
    assert theirs.occupancy == ours.occupancy, name
    assert theirs.waited.keys() == ours.waited.keys(), name
    for group, values in ours.waited.items():
        for mine, other in zip(values, theirs.waited[group], strict=True):
            assert abs(mine - other) < 1e-6, (name, group)


def _with_spark(trace: str, directory: Path) -> Answers:
    from integration.pipeline import ingest, latency, lifecycle, occupancy
    from integration.pipeline.session import spark_session

    out = str(directory / "tables")
    conf = {"spark.driver.memory": DRIVER_MEMORY, "spark.driver.maxResultSize": MOST_RESULTS}
    answers = Answers()
    with spark_session("bench", master=f"local[{CORES}]", conf=conf) as spark:
        spark.range(10).count()
        watch = Stopwatch(answers)
        ingest.run(spark, [trace], out)
        watch.lap("read")
        lifecycle.run(spark, out, out)
        watch.lap("lifecycle")
        latency.run(spark, out, out)
        watch.lap("latency")
        occupancy.run(spark, out, out)
        watch.lap("occupancy")
        answers.operations = spark.read.parquet(f"{out}/lifecycles").count()
        for row in spark.read.parquet(f"{out}/latency").where("minute is null").collect():
            percentiles = tuple(row[f"waited_{name}_ms"] for name in PERCENTILES)
            answers.waited[row.purgatory, row.outcome] = percentiles
        for row in spark.read.parquet(f"{out}/occupancy_summary").collect():
            answers.occupancy[row.broker, row.purgatory, row.key] = (row.peak, row.parked_ms)
    driver_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"the driver's Python has held at most {driver_mb:.0f} MB, its JVM {DRIVER_MEMORY}")
    return answers


# -- tracing --------------------------------------------------------------------------------------


def _tracing(options: Options, report: Report) -> None:
    """Produce to clusters that trace and to one that does not, in turns."""
    rates: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(options.rounds):
            for name, arguments in TRACES.items():
                path = [f"{directory}/trace.jsonl"] if name == "file" else []
                with _cluster(*arguments, *path) as bootstrap_servers:
                    for load, messages in MESSAGES.items():
                        rate = _produce(bootstrap_servers, messages, batched="batches" in load)
                        rates.setdefault((load, name), []).append(rate)
    for load in MESSAGES:
        base = median(rates[load, "without"])
        for name in TRACES:
            rate = median(rates[load, name])
            cost = 100 * (1 - rate / base)
            report.add(SUITE, f"{load}, trace: {name}", "1/s", OURS, rate)
            if name != "without":
                report.add(SUITE, f"cost, {load}, trace: {name}", "%", OURS, cost, lower=True)
                report.bar_below(SUITE, f"cost, {load}, trace: {name}", 10)


@contextmanager
def _cluster(*arguments: str):
    command = [sys.executable, "-m", "broker_sim", "run", "--topic", "bench:3:3", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())["bootstrap_servers"]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()


def _produce(bootstrap_servers: str, messages: int, *, batched: bool) -> float:
    single = {"linger.ms": 0, "batch.num.messages": 1}
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "acks": "all",
            "log_level": 0,
            "queue.buffering.max.messages": 1_000_000,
            **({} if batched else single),
        }
    )
    producer.produce("bench", b"warm", partition=0)
    producer.flush(30)
    start = time.perf_counter()
    for number in range(messages):
        producer.produce("bench", b"x" * 100, partition=number % 3)
        if number % 500 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    return messages / (time.perf_counter() - start)

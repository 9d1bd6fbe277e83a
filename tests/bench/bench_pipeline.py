"""The pipeline on millions of events beside pandas and DuckDB, and what tracing costs a broker.

The same answers are computed by each peer, each in a process of its own, and must be equal. Spark reads
the trace as lines, and once more as Parquet. Then a skewed trace: nearly all events have one key, and
the largest task of each job is named. Then the jobs run on executors of their own, for a tenth of the
events and for all: what lives in the driver must not grow, and what tasks may send to it is limited to
far less than the data. `PIPELINE_EVENTS` in the environment sets another number of events,
`PIPELINE_ONLY` leaves out all but "tracing", "throughput", "skew" or "driver".

A tiny run has one pass on Spark, that from the lines, unless it is asked for all peers.
"""

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from options import Options
from peers import FamilyCpu, simulator
from pipeline_data import write_parquet, write_trace
from pipeline_peers import PERCENTILES, Answers, Stopwatch, with_duckdb, with_pandas
from report import OURS, Report
from task_sizes import TaskSize, largest_task

SUITE = "pipeline"
CORES = os.cpu_count() or 1
DRIVER_MEMORY = "512m"
"""The least that Spark starts with; a trace of five million events is four times as large."""
MOST_RESULTS = "4m"
FROM_PARQUET = ", from Parquet"
CPU = "all steps, CPU per million events"
INGEST_CPU = "read, CPU per million events"
OLD_INGEST_CPU_S = 37
"""Processor seconds per million lines before lines were parsed and written once."""
HOT_SHARE = 0.95
STEPS = 4
MANY_TASKS = {
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1m",
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.shuffle.partitions": "32",
}
"""Tasks are as small here as they are many on a cluster, so that a hot key shows."""
ONE, BATCHES = "one message a request, acks=all", "batches, acks=all"
TRACES = {"without": (), "file": ("--trace",), "topic": ("--trace-topic", "trace")}


@dataclass(frozen=True)
class Sizes:
    """How much is traced and produced."""

    events: int
    messages: dict[str, int]
    """Number of messages, by the way they are produced."""
    spark: dict[str, str]
    """Settings of the session that reads them all."""


FULL = Sizes(events=5_000_000, messages={ONE: 8_000, BATCHES: 3_000_000}, spark={})
TINY = Sizes(
    events=3_000,
    messages={ONE: 20, BATCHES: 1_000},
    spark={
        "spark.driver.extraJavaOptions": ("-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms500m -Xmn300m"),
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "1",
        "spark.sql.shuffle.partitions": "1",
    },
)


def run(options: Options, report: Report) -> None:
    """Measure all."""
    sizes = options.choose(FULL, TINY)
    only = os.environ.get("PIPELINE_ONLY")
    events = int(os.environ.get("PIPELINE_EVENTS", sizes.events))
    if only in {None, "tracing"}:
        _tracing(options, sizes.messages, report)
    for part, (measure, packages) in _parts(options).items():
        if only not in {None, part}:
            continue
        if (reason := _missing(packages)) is not None:
            report.say(f"without {part}: {reason}")
        else:
            measure(options, report, events)
    report.print_suite(SUITE)


def _parts(options: Options) -> dict[str, tuple[Callable[..., None], tuple[str, ...]]]:
    """Return what is measured of the jobs, and the packages that each needs."""
    peers = ("pandas", "duckdb") if options.peers else ("pandas",)
    parts = {
        "throughput": (_throughput, ("pyspark", *peers)),
        "skew": (_skewed, ("pyspark",)),
        "driver": (_driver_memory, ("pyspark",)),
    }
    return parts if options.peers else {"throughput": parts["throughput"]}


def _missing(packages: tuple[str, ...]) -> str | None:
    """Return what a part lacks here, None if it can run."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        return f"pip install {' '.join(missing)}"
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.spark.session import require_java

    try:
        require_java()
    except PipelineError as error:
        return str(error)
    return None


def _throughput(options: Options, report: Report, events: int) -> None:
    conf = options.choose(FULL, TINY).spark
    directory = Path(tempfile.mkdtemp(prefix="bench-pipeline-"))
    try:
        trace, columns = directory / "trace.jsonl", directory / "trace.parquet"
        write_trace(trace, events)
        report.say(f"{events:,} events, {trace.stat().st_size / 1e9:.2f} GB of JSON, {CORES} cores")
        found = {
            (OURS, ""): _cold(_with_spark, str(trace), str(directory / "a"), conf),
            ("pandas", ""): _cold(with_pandas, str(trace)),
        }
        if options.peers:
            write_parquet(trace, columns)
            found["DuckDB", ""] = _cold(with_duckdb, str(trace))
            found[OURS, FROM_PARQUET] = _cold(_with_spark, str(columns), str(directory / "b"), conf)
    finally:
        shutil.rmtree(directory)
    ours = found[OURS, ""]
    for (name, source), answers in found.items():
        _must_agree(name, ours, answers)
        for step, seconds in answers.seconds.items():
            report.add(SUITE, step + source, "s", name, seconds, lower=True)
            cpu_s = answers.cpu_s[step]
            report.add(SUITE, f"{step}, CPU{source}", "s", name, cpu_s, lower=True)
        report.add(SUITE, f"all steps{source}", "s", name, answers.total_s, lower=True)
        million_s = sum(answers.cpu_s.values()) * 1e6 / events
        report.add(SUITE, CPU + source, "s", name, million_s, lower=True)
        report.add(SUITE, f"all steps, events{source}", "1/s", name, events / answers.total_s)
    report.add(SUITE, INGEST_CPU, "s", OURS, ours.cpu_s["read"] * 1e6 / events, lower=True)
    report.bar_ratio(SUITE, "all steps", "pandas", "all steps", at_most=2.5)
    report.bar_ratio(SUITE, f"all steps{FROM_PARQUET}", "pandas", "all steps", at_most=1.5)
    report.bar_below(SUITE, INGEST_CPU, OLD_INGEST_CPU_S * 0.6)


def _cold(compute: Callable[..., Answers], *arguments: object) -> Answers:
    """Compute in a process of its own, so that nothing is warm from what ran before."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(compute, *arguments).result()


def _must_agree(name: str, ours: Answers, theirs: Answers) -> None:
    assert theirs.operations == ours.operations, name
    assert theirs.occupancy == ours.occupancy, name
    assert theirs.latency.keys() == ours.latency.keys(), name
    for group, values in ours.latency.items():
        for mine, other in zip(values, theirs.latency[group], strict=True):
            assert mine == other or abs(mine - other) < 1e-6, (name, group)


def _with_spark(trace: str, out: str, conf: dict[str, str]) -> Answers:
    from broker_sim_integration.pipeline.spark.session import spark_session

    answers = Answers()
    master = f"local[{CORES}]"
    with spark_session("bench", master=master, conf=conf) as spark:
        spark.range(10).count()
        with closing(FamilyCpu(spark.sparkContext._gateway.proc.pid)) as jvm:
            watch = Stopwatch(answers, lambda: time.process_time() + jvm.seconds())
            for step in _run_jobs(spark, trace, out):
                watch.lap(step)
        answers.operations = spark.read.parquet(f"{out}/lifecycles").count()
        for row in spark.read.parquet(f"{out}/latency").collect():
            minute = None if row.minute is None else int(row.minute.timestamp()) // 60
            percentiles = [row[f"{what}_{name}_ms"] for what in ("waited", "lateness") for name in PERCENTILES]
            answers.latency[row.purgatory, row.outcome, minute] = (row.operations, *percentiles)
        for row in spark.read.parquet(f"{out}/occupancy_summary").collect():
            answers.occupancy[row.broker, row.purgatory, row.key] = (row.peak, row.parked_ms)
    return answers


def _run_jobs(spark: object, trace: str, out: str) -> Iterator[str]:
    """Run the jobs; yields the name of each step when it is done."""
    from broker_sim_integration.pipeline.jobs import ingest, latency, lifecycle, occupancy

    ingest.run(spark, [trace], out)
    yield "read"
    lifecycle.run(spark, out, out)
    yield "lifecycle"
    latency.run(spark, out, out)
    yield "latency"
    occupancy.run(spark, out, out)
    yield "occupancy"


# -- skew -----------------------------------------------------------------------------------------


def _skewed(options: Options, report: Report, events: int) -> None:
    """Run the jobs on a trace with one hot key, and beside it on an even one; name the largest tasks."""
    del options  # of sizes it needs that alone
    for what, share in (("even", 0.0), ("skewed", HOT_SHARE)):
        with (
            tempfile.TemporaryDirectory(prefix="bench-skew-") as directory,
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process,
        ):
            found = process.submit(_largest_tasks, directory, events, share).result()
        for step, task in found.items():
            report.add(SUITE, f"largest task of {step}, {what}", "rows", OURS, task.rows, lower=True)
        step, task = max(found.items(), key=lambda item: item[1])
        report.say(f"largest task, {what} keys: in {step}, {task}")


def _largest_tasks(directory: str, events: int, hot_share: float) -> dict[str, TaskSize]:
    from broker_sim_integration.pipeline.spark.session import spark_session

    trace = Path(directory) / "trace.jsonl"
    write_trace(trace, events, hot_share=hot_share)
    found = {}
    with spark_session("bench", master=f"local[{CORES}]", conf=MANY_TASKS) as spark:
        jobs = _run_jobs(spark, str(trace), str(Path(directory) / "tables"))
        for number in range(STEPS):
            group = f"step {number}"
            spark.sparkContext.setJobGroup(group, group)
            step = next(jobs)
            found[step] = largest_task(spark, group)
    return found


# -- the driver's memory --------------------------------------------------------------------------


def _driver_memory(options: Options, report: Report, events: int) -> None:
    """Run the jobs on executors of their own, so that the driver's memory is the driver's alone."""
    del options
    for count in (events // 10, events):
        with (
            tempfile.TemporaryDirectory(prefix="bench-driver-") as directory,
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process,
        ):
            heap_mb, python_mb = process.submit(_driver_mb, directory, count).result()
        what = f"driver with {count:,} events"
        report.add(SUITE, f"{what}: live heap of its JVM", "MB", OURS, heap_mb, lower=True)
        report.add(SUITE, f"{what}: its Python at most", "MB", OURS, python_mb, lower=True)


def _driver_mb(directory: str, events: int) -> tuple[float, float]:
    """Return the most that lived in the driver's heap after a job, and its Python's peak, in MB."""
    from broker_sim_integration.pipeline.spark.session import spark_session

    trace = Path(directory) / "trace.jsonl"
    write_trace(trace, events)
    conf = {
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.maxResultSize": MOST_RESULTS,
        "spark.sql.shuffle.partitions": "4",
    }
    heap_bytes = 0
    with spark_session("bench", master=f"local-cluster[{CORES},1,1024]", conf=conf) as spark:
        memory = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        for _ in _run_jobs(spark, str(trace), str(Path(directory) / "tables")):
            memory.gc()
            heap_bytes = max(heap_bytes, memory.getHeapMemoryUsage().getUsed())
    return heap_bytes / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# -- tracing --------------------------------------------------------------------------------------


def _tracing(options: Options, messages: dict[str, int], report: Report) -> None:
    """Produce to clusters that trace and to one that does not, in turns."""
    rates: dict[tuple[str, str], list[float]] = {}
    cpu_us: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(options.rounds):
            for trace, arguments in TRACES.items():
                path = [f"{directory}/trace.jsonl"] if trace == "file" else []
                with simulator("--topic", "bench:3:3", *arguments, *path) as peer:
                    for load, count in messages.items():
                        before_s = peer.cpu_s()
                        batched = "batches" in load
                        rate = _produce(peer.bootstrap_servers, count, batched=batched)
                        used_us = (peer.cpu_s() - before_s) * 1e6 / count
                        rates.setdefault((load, trace), []).append(rate)
                        cpu_us.setdefault((load, trace), []).append(used_us)
    for (load, trace), found in rates.items():
        what, rate = f"{load}, trace: {trace}", median(found)
        report.add(SUITE, what, "1/s", OURS, rate)
        used_us = median(cpu_us[load, trace])
        report.add(SUITE, f"{what}, brokers' CPU", "µs/msg", OURS, used_us, lower=True)
        if trace != "without":
            cost = 100 * (1 - rate / median(rates[load, "without"]))
            report.add(SUITE, f"cost, {what}", "%", OURS, cost, lower=True)
    for load, trace in product(messages, TRACES):
        report.bar_below(SUITE, f"cost, {load}, trace: {trace}", 10)


def _produce(bootstrap_servers: str, messages: int, *, batched: bool) -> float:
    single = {"linger.ms": 0, "batch.num.messages": 1}
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "acks": "all",
            "log_level": 0,
            "queue.buffering.max.messages": 4_000_000,
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

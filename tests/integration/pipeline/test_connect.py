"""The jobs as a client of a Spark Connect server: no context, no JVM in the process."""

import contextlib
import datetime as dt
import json
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from broker_sim_integration.reference.clusters.ports import free_ports

pytestmark = [pytest.mark.spark, pytest.mark.soak(part="spark")]

START_TIMEOUT_S = 180
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
ELSEWHERE = "Pacific/Auckland"
"""Time zone of the server: its session has that of its process unless a client sets another."""
T = 1_700_000_000_000
"""2023-11-14 22:13:20 in UTC, and the next day in Auckland."""
JOBS = """
import json, sys
from pyspark.sql import SparkSession
from broker_sim_integration.pipeline.jobs import ingest, latency, lifecycle, occupancy, parity, sweep
from broker_sim_integration.pipeline.spark.driver import make_directory

address, trace, out = sys.argv[1:]
spark = SparkSession.builder.remote(address).getOrCreate()
assert "connect" in type(spark).__module__, type(spark)
make_directory(spark, out)
plan = sweep.SweepPlan({"duration_ms": [2000]}, repeats=2)
answers = [
    str(ingest.run(spark, [trace], out)),
    str(ingest.run(spark, [trace], out)),
    lifecycle.run(spark, out, out),
    latency.run(spark, out, out),
    occupancy.run(spark, out, out),
    parity.run(spark, out, out),
    sweep.run(spark, plan, out),
]
print(json.dumps(answers))
spark.stop()
"""


@pytest.fixture
def connect_server(require_spark, tmp_path):
    """A Spark Connect server in a process of its own, in another time zone; yields its address."""
    if find_spec("grpc") is None:
        pytest.fail("Spark Connect needs grpcio: make setup-spark")
    home = Path(find_spec("pyspark").origin).parent
    (port,) = free_ports(1)
    command = [
        home / "bin" / "spark-submit", "--master", "local[2]", "--driver-memory", "1g",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--conf", f"spark.connect.grpc.binding.port={port}",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
        "--conf", "spark.sql.shuffle.partitions=2",
        "--conf", "spark.ui.enabled=false",
        "--conf", f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}",
        "--conf", f"spark.driver.extraJavaOptions={QUICK_JVM} -Duser.timezone={ELSEWHERE}",
    ]  # fmt: skip
    environment = {
        **os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    started, lines = threading.Event(), []

    def read(process):
        for line in process.stderr:
            lines.append(line)
            if "Spark Connect server started" in line:
                started.set()

    with contextlib.ExitStack() as stack:
        process = subprocess.Popen(
            [*map(str, command), "spark-internal"],
            cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        stack.enter_context(process.stderr)
        reader = threading.Thread(target=read, args=(process,))
        reader.start()
        stack.callback(reader.join, START_TIMEOUT_S)
        stack.callback(process.wait, START_TIMEOUT_S)
        stack.callback(process.terminate)
        assert started.wait(START_TIMEOUT_S), "".join(lines[-20:])
        yield f"sc://127.0.0.1:{port}"


def test_jobs_run_on_a_spark_connect_server(connect_server, event, life, observation, tmp_path, write_lines):
    rows = [*life(1, T, T + 500), *life(2, T + 100, T + 200), observation(), "broken"]
    trace = write_lines(tmp_path / "trace.jsonl", [*rows, observation(side="kafka")])
    done = subprocess.run(
        [sys.executable, "-c", JOBS, connect_server, trace, str(tmp_path / "out")],
        env={**os.environ, "SPARK_CONNECT_MODE_ENABLED": "1", "JAVA_HOME": "/nowhere"},
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        "9 lines: 6 new events, 2 new observations, 1 quarantined, 0 known already",
        "9 lines: 0 new events, 0 new observations, 1 quarantined, 8 known already",
        "2 lifecycles, 0 of them broken",
        "2 groups",
        "2 buckets of 1000 ms in 2 series",
        "1 of 1 steps agree",
        "2 runs of 1 settings",
    ]
    assert [path.name for path in (tmp_path / "out/events").glob("date=*")] == ["date=2023-11-14"]
    minutes = _times(tmp_path / "out/latency", "minute") - {None}
    assert minutes == {dt.datetime.fromtimestamp(T // 60_000 * 60, dt.UTC)}
    assert _times(tmp_path / "out/occupancy", "bucket") == {dt.datetime.fromtimestamp(T // 1000, dt.UTC)}


def _times(table, column):
    """Return the values of a column of timestamps, in UTC."""
    values = pq.read_table(table, columns=[column]).column(0).to_pylist()
    return {value and value.replace(tzinfo=dt.UTC) for value in values}

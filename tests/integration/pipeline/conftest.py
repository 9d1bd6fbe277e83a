"""One Spark session for all tests, and short ways to write events, frames and JSON lines.

Without pyspark or Java the tests that need Spark are skipped, in one line; with CI=true they fail.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import subprocess
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest
from broker_sim_integration.reference.clusters.ports import free_ports

BENCH = Path(__file__).parents[2] / "bench"
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""A JVM that runs for a minute is faster without compiler and collector threads."""
QUICK_DRIVER = f"{QUICK_JVM} -Xms500m -Xmn300m"
"""Planning makes much garbage: with a small heap it is collected every second."""
START_TIMEOUT_S = 120

EVENT = {
    "ts_ms": 1_700_000_000_000,
    "run_id": "r1",
    "side": "sim",
    "broker": 1,
    "purgatory": "Produce",
    "operation_id": 1,
    "event": "tried",
    "keys": ["t-0"],
    "api": "Produce",
    "client_id": "c",
    "delay_ms": 1000,
    "waited_ms": None,
    "lateness_ms": None,
    "completed_by": None,
    "error_code": None,
    "watched": 1,
    "num_delayed": 1,
}
OBSERVATION = {
    "run_id": "r1",
    "side": "sim",
    "scenario": "acks",
    "repeat": 1,
    "step": "produce",
    "attempt": 1,
    "error_code": 0,
    "base_offset": 0,
    "high_watermark": None,
    "records": None,
    "bytes": None,
    "elapsed_ms": 1.0,
    "timing": "at_once",
    "due_ms": 0.0,
    "earliest_ms": 0.0,
    "spread_ms": 0.0,
    "stalled_ms": 0.0,
    "fields": {},
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("spark"):
            # pyspark leaves the socket of every collect() to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def _missing() -> str | None:
    if find_spec("pyspark") is None:
        return "pyspark is not installed: install openjdk-17-jre-headless and make setup-spark"
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.spark.session import require_java

    try:
        require_java()
    except PipelineError as error:
        return str(error)
    return None


@pytest.fixture(scope="session")
def require_spark():
    reason = _missing()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def spark(require_spark, tmp_path_factory):
    from broker_sim_integration.pipeline.spark.session import spark_session

    # pyspark.testing imports pandas-on-Spark, which warns without it where pandas is installed.
    os.environ.setdefault("PYARROW_IGNORE_TIMEZONE", "1")
    conf = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_DRIVER,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "2",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    with spark_session("tests", master="local[2]", conf=conf, kafka=True) as session:
        yield session


@pytest.fixture(scope="session")
def task_sizes():
    """The functions of the bench that tell what the jobs of a group ran, by name."""
    return runpy.run_path(str(BENCH / "task_sizes.py"))


@pytest.fixture(scope="session")
def explained():
    """Return a function from a frame to the text of its plans."""

    def explain(frame):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            frame.explain("simple")
        return out.getvalue()

    return explain


@pytest.fixture(scope="session")
def event():
    """Return a function that makes one event, as a dict."""
    return lambda **fields: EVENT | fields


@pytest.fixture(scope="session")
def life(event):
    """Return a function that makes all events of one operation: tried, parked, and its end."""

    def make(operation_id, parked_at=None, ended_at=None, outcome="completed", **fields):
        base = {"operation_id": operation_id, **fields}
        tried_at = base.pop("tried_at", parked_at if parked_at is not None else ended_at)
        events = [event(**base, event="tried", ts_ms=tried_at)]
        if parked_at is not None:
            events.append(event(**base, event="parked", ts_ms=parked_at))
        if ended_at is not None:
            by = {"expired": "timer", "completed": "key:t-0"}.get(outcome)
            end = {
                "event": outcome,
                "ts_ms": ended_at,
                "waited_ms": ended_at - tried_at,
                "lateness_ms": 0 if outcome == "expired" else None,
                "completed_by": by,
                "error_code": 7 if outcome == "expired" else 0,
            }
            events.append(event(**{**end, **base}))
        return events

    return make


@pytest.fixture(scope="session")
def events_frame(spark):
    """Return a function that makes a frame of events."""
    from broker_sim_integration.pipeline.jobs.schema import EVENT_SCHEMA

    return lambda rows: spark.createDataFrame(rows, EVENT_SCHEMA)


@pytest.fixture(scope="session")
def observation():
    """Return a function that makes one observation, as a dict."""
    return lambda **fields: OBSERVATION | fields


@pytest.fixture(scope="session")
def write_lines():
    """Return a function that writes dicts, or texts as they are, as lines of a file."""

    def write(path, rows):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return write


class Daemon:
    """A master or worker of a standalone cluster; its log is read all the time, so that it never blocks."""

    def __init__(self, stack, environment, name, until, *arguments):
        self.name = name
        self._until = until
        self._ready = threading.Event()
        program = Path(environment["SPARK_HOME"]) / "bin" / "spark-class"
        self._process = subprocess.Popen(
            [program, f"org.apache.spark.deploy.{name}", *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.enter_context(contextlib.closing(self._process.stderr))
        reader = threading.Thread(target=self._read)
        reader.start()
        stack.callback(reader.join, START_TIMEOUT_S)
        stack.callback(self._process.wait, START_TIMEOUT_S)
        stack.callback(self._process.terminate)

    def _read(self):
        for line in self._process.stderr:
            if self._until in line:
                self._ready.set()

    def wait_until_ready(self):
        assert self._ready.wait(START_TIMEOUT_S), f"{self.name} did not start"


@pytest.fixture(scope="session")
def standalone(require_spark, tmp_path_factory):
    """A master and two workers on 127.0.0.1; yields the master's address."""
    environment = {
        **os.environ,
        "SPARK_HOME": str(Path(find_spec("pyspark").origin).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        "SPARK_WORKER_DIR": str(tmp_path_factory.mktemp("work")),
    }
    (port,) = free_ports(1)
    address = f"spark://127.0.0.1:{port}"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    size = ["--cores", "1", "--memory", "600m"]
    with contextlib.ExitStack() as stack:
        daemons = [
            Daemon(
                stack, environment, "master.Master", "I have been elected leader",
                *here, "--port", str(port),
            ),
            *[
                Daemon(
                    stack, environment, "worker.Worker", "Successfully registered with master",
                    *here, *size, address,
                )
                for _ in range(2)
            ],
        ]  # fmt: skip
        for daemon in daemons:
            daemon.wait_until_ready()
        yield address

"""A cluster whose dead brokers and members of streams groups are fenced soon, and Java programs that run beside it."""

import subprocess
from contextlib import contextmanager

import pytest

SHORT_SESSION = (*("--config", "broker.session.timeout.ms=2000"), *("--config", "broker.heartbeat.interval.ms=500"))
STREAMS_GROUPS = (
    *("--config", "group.streams.min.session.timeout.ms=6000"),
    *("--config", "group.streams.session.timeout.ms=6000"),
    *("--config", "group.streams.min.heartbeat.interval.ms=500"),
    *("--config", "group.streams.heartbeat.interval.ms=500"),
    *("--config", "group.streams.num.standby.replicas=1"),
)
QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="module")
def cluster(run_simulator):
    with run_simulator(*SHORT_SESSION, *STREAMS_GROUPS) as running:
        yield running


@pytest.fixture
def run_java(kafka_class_path, tmp_path):
    """Return a context manager that runs a program with Kafka's `artifacts`, and kills it: log, arguments."""

    @contextmanager
    def run(artifacts, log_name, *arguments, **jars_of):
        command = ["java", *QUICK_JVM, "-cp", kafka_class_path(*artifacts, **jars_of), *map(str, arguments)]
        with (tmp_path / log_name).open("ab") as log:
            process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    return run

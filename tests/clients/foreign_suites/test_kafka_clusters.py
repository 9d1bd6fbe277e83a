"""Kafka's own cluster tests, from the test jars of its release, pass against clusters of `broker-sim run`.

Their cluster is an object that a class of Kafka's test kit makes for each test; the Java files beside this one stand
before that class on the class path. `kafka_clusters.toml` lists the classes and the tests that do not pass, with
the reason of each: a failure that is not listed fails here, and so does a listed test that passes.
"""

import hashlib
import os
import queue
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.soak(part="kafka_clusters")

HERE = Path(__file__).parent
JAVA = HERE / "kafka_java"
LISTED = tomllib.loads((HERE / "kafka_clusters.toml").read_text())
CLASSES = LISTED["classes"]
"""Number of tests by name of the class."""
FAILURES = {test: failure["reason"] for failure in LISTED["failures"] for test in failure["tests"]}
UNSTEADY = {
    test for failure in LISTED["failures"] if failure.get("passes_at_times", False) for test in failure["tests"]
}
"""Listed tests that may pass, because they are a race at Kafka too."""
MAIN = "org.apache.kafka.common.test.junit.RunTests"
JVM = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g")
PROCESSES = os.cpu_count() or 1
MAVEN_TIMEOUT_S = 900
CLASS_END, PASSED = "END", "SUCCESSFUL"


class Verdict(NamedTuple):
    """How a test ended: JUnit's word, and the error."""

    status: str
    error: str


@pytest.fixture(scope="module")
def class_path(require_or_skip, find_program, tmp_path_factory):
    """Return the class path: our classes first, then the jars."""
    from broker_sim_integration.reference.cache import cached_directory

    pom = JAVA / "pom.xml"
    maven, compiler = find_program("mvn", "maven"), find_program("javac", "openjdk-17-jdk-headless")

    def fetch(directory):
        command = [maven, "-B", "-q", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MAVEN_TIMEOUT_S)
        if done.returncode != 0:
            require_or_skip(f"Maven cannot fetch the test jars of Kafka: {done.stdout}")

    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:8]
    jars = cached_directory(f"kafka-cluster-tests-{digest}", fetch, timeout_s=MAVEN_TIMEOUT_S)
    classes = tmp_path_factory.mktemp("classes")
    subprocess.run([compiler, "-d", classes, "-cp", f"{jars}/*", *sorted(JAVA.glob("*.java"))], check=True)
    return f"{classes}:{jars}/*"


def run_classes(class_path, names, verdicts, report):
    """Run classes from a queue in one JVM until it is empty; put the verdict of each test into `verdicts`."""
    simulator = f"{sys.executable}\t-m\tbroker_sim"
    command = [*JVM, f"-Dbroker.sim.command={simulator}", "-cp", class_path, MAIN]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        while True:
            try:
                name = names.get_nowait()
            except queue.Empty:
                process.stdin.close()
                return
            print(name, file=process.stdin, flush=True)
            for line in iter(process.stdout.readline, ""):
                status, *fields = line.rstrip("\n").split("\t")
                if status == CLASS_END:
                    break
                test, _, error = fields
                verdicts[test] = Verdict(status, error)
            report(name)


@pytest.fixture(scope="module")
def verdicts(class_path, request):
    """Run the chosen classes, several at a time; return the verdict of each test by its name."""
    names, verdicts = queue.Queue(), {}
    chosen = {item.callspec.params["name"] for item in request.session.items if item.module is request.module}
    for name in sorted(chosen, key=CLASSES.get, reverse=True):
        names.put(name)
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def report(name):
        so_far = list(verdicts.items())
        passed = sum(verdict.status == PASSED for _, verdict in so_far)
        with capture.global_and_fixture_disabled():
            print(f"{name}: {passed} of {len(so_far)} tests have passed so far", file=sys.stderr, flush=True)
            for test, verdict in so_far:
                if test.startswith(f"{name}.") and verdict.status != PASSED and test not in FAILURES:
                    print(f"{test}: {verdict.error}", file=sys.stderr, flush=True)

    threads = [
        threading.Thread(target=run_classes, args=(class_path, names, verdicts, report)) for _ in range(PROCESSES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return verdicts


@pytest.mark.parametrize("name", CLASSES)
def test_what_is_not_listed_passes(verdicts, name):
    of_class = {test: verdict for test, verdict in verdicts.items() if test.startswith(f"{name}.")}
    failed = {test: verdict.error for test, verdict in of_class.items() if verdict.status != PASSED}
    assert {test: error for test, error in failed.items() if test not in FAILURES} == {}
    listed = {test for test in FAILURES if test.startswith(f"{name}.")}
    assert listed - failed.keys() <= UNSTEADY, "these pass: take them out of kafka_clusters.toml"
    assert len(of_class) == CLASSES[name]

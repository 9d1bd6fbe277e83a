"""A cluster in a process of its own for outside clients, started by `broker-sim run`."""

import json
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from itertools import count

import pytest
from broker_sim_integration.clients.admin_requests import GROUP
from broker_sim_integration.clients.raw_client import RawConnection

from broker_sim.control.client import ControlClient
from broker_sim.protocol import messages

CONFIGS = {
    # A frozen follower stays in the ISR, however long a test takes on a busy machine.
    "broker.session.timeout.ms": 120_000,
    "replica.lag.time.max.ms": 120_000,
    # A new group does not wait for more members.
    "group.initial.rebalance.delay.ms": 0,
}
END_TIMEOUT_S = 120
BUILD_TIMEOUT_S = 600
QUICK_BUILD = ["-buildvcs=false", "-gcflags=all=-N -l", "-ldflags=-s -w"]
"""Nothing is optimized, and what only debuggers read is left out: the programs run for seconds."""
ALTER_CONFIGS_VERSION, SET = 1, 0


class Simulator:
    """The cluster's addresses, and a client of its control port."""

    def __init__(self, ready):
        self.bootstrap_servers = ready["bootstrap_servers"]
        self.control = ControlClient(ready["control"])
        self._numbers = count(1)

    def create_topic(self, partitions=1, replication_factor=3, **configs):
        """Return the name of a new topic; configs with `_` for `.`."""
        name = f"topic-{next(self._numbers)}"
        self.control.request(
            "POST",
            "/topics",
            {
                "name": name,
                "partitions": partitions,
                "replication_factor": replication_factor,
                "configs": {key.replace("_", "."): value for key, value in configs.items()},
            },
        )
        return name

    def partition(self, topic, number=0):
        """Return the status of a partition."""
        topics = self.control.get("/status")["topics"]
        return next(t for t in topics if t["name"] == topic)["partitions"][number]


@contextmanager
def _run(*options):
    configs = [word for key, value in CONFIGS.items() for word in ("--config", f"{key}={value}")]
    command = [sys.executable, "-m", "broker_sim", "run", "--brokers", "3", *configs, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Simulator(json.loads(process.stdout.readline()))
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(END_TIMEOUT_S) == 0


@pytest.fixture(scope="session")
def run_simulator():
    """Return a context manager that runs a cluster with further options of the command line."""
    return _run


@pytest.fixture(scope="session")
def simulator(run_simulator):
    with run_simulator() as running:
        yield running


@pytest.fixture(scope="session")
def run_real_kafka(require_or_skip):
    """Return a context manager that runs three real brokers with further configurations."""

    @contextmanager
    def run(configs):
        from broker_sim_integration.reference.errors import ReferenceUnavailableError
        from broker_sim_integration.reference.selection import ReferenceKind, select_reference

        selection = select_reference("auto", make_image=False)
        if selection.kind is ReferenceKind.RECORDED:
            require_or_skip(selection.reason)
        try:
            with selection.cluster(configs) as cluster:
                yield cluster
        except ReferenceUnavailableError as unavailable:
            require_or_skip(str(unavailable))

    return run


@pytest.fixture(scope="session")
def alter_group():
    """Return a function that sets configurations of a group: bootstrap servers, group, values."""

    def alter(bootstrap_servers, group, configs):
        request = messages.IncrementalAlterConfigsRequest
        changes = [request.AlterableConfig(key, SET, str(value)) for key, value in configs.items()]
        host, port = bootstrap_servers.partition(",")[0].split(":")
        with RawConnection(host, int(port)) as connection:
            reply = connection.request(
                request([request.AlterConfigsResource(GROUP, group, changes)]),
                ALTER_CONFIGS_VERSION,
                messages.IncrementalAlterConfigsResponse,
            )
        (result,) = reply.message.responses
        assert result.error_code == 0, result.error_message

    return alter


@pytest.fixture
def frozen_followers(simulator):
    """Return a function that pauses the followers of a topic's partition 0 until the test ends."""
    paused = []

    def freeze(topic):
        state = simulator.partition(topic)
        for broker in state["isr"]:
            if broker != state["leader"]:
                simulator.control.request("POST", f"/brokers/{broker}/pause")
                paused.append(broker)

    yield freeze
    for broker in paused:
        simulator.control.request("POST", f"/brokers/{broker}/resume")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.startswith("tests/clients/"):
            item.add_marker(pytest.mark.clients)


@pytest.fixture(scope="session")
def find_program(require_or_skip):
    """Return a function that gives the path of a program; `package` is the one of apt that has it."""

    def find(name, package):
        path = shutil.which(name)
        if path is None:
            require_or_skip(f"{name} is missing: apt-get install -y --no-install-recommends {package}")
        return path

    return find


@pytest.fixture(scope="session")
def find_go(find_program):
    """Return a function that gives the path of Go's command."""
    return lambda: find_program("go", "golang-go")


@pytest.fixture(scope="session")
def build_go(require_or_skip, find_go):
    """Return a function that builds the programs of a Go module into a directory."""

    def build(module, directory):
        done = subprocess.run(
            [find_go(), "build", *QUICK_BUILD, "-o", f"{directory}/", "./..."],
            cwd=module,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines()[-1]
            require_or_skip(f"Go cannot build {module.name}: {reason}")

    return build


@pytest.fixture(scope="session")
def kafka_class_path(require_or_skip):
    """Return what gives the class path of Kafka's clients, or of artifacts, for programs; also of a `version`."""

    def class_path(*artifacts, **jars_of):
        from broker_sim_integration.reference.errors import ReferenceUnavailableError
        from broker_sim_integration.reference.jars import kafka_jars

        if shutil.which("javac") is None:
            require_or_skip("a JDK is missing: apt-get install -y --no-install-recommends openjdk-17-jdk-headless")
        try:
            return f"{kafka_jars(*artifacts, **jars_of)}/*"
        except ReferenceUnavailableError as unavailable:
            require_or_skip(str(unavailable))

    return class_path

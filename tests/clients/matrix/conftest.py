"""Clients as processes of their own, against the simulator and against a real Kafka.

A member of a group is started with the bootstrap servers, its group, a topic, its session timeout and
its interval of heartbeats in ms, and its strategy: `range`, `roundrobin`, `sticky`, `cooperative-sticky`,
or `consumer` for the protocol of KIP-848, whose sessions are a configuration of the brokers. On stdout it
tells in lines of JSON what it was assigned, what was revoked, what it did; a line on its stdin makes it
leave.

What it does in the roles `group` and `transaction` is in the folders of that name; for `share` see
groups/test_share_members.py.
"""

import json
import re
import signal
import subprocess
import sys
import threading
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from broker_sim_integration.clients.stopwatch import now_ms
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

HERE = Path(__file__).parent
MEMBERS = HERE / "members"
TOOL_RUNNER = HERE / "ToolRunner.java"
SESSION_MS = 6000
"""Of a member that is to die, and of all members of the consumer protocol."""
LONG_SESSION_MS = 240_000
"""Of a member that lives: it is not lost, however long a busy machine keeps it from running."""
HEARTBEAT_MS = 400
CONFIGS = {
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.max.session.timeout.ms": str(LONG_SESSION_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
PATIENCE_S = 120
BUILD_TIMEOUT_S = 600
TOOL_TIMEOUT_S = 180
QUICK_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
KCAT_CHANGE = re.compile(r"^% Group \S+ rebalanced.*\b(assign|revoke).*?: ?([^:]*)$")
"""`assigned: topic [0]`, `revoked: ...`, or `incremental assignment of 1 partition(s) (...): topic [0]`."""


class Side:
    """A cluster, and what a test does to it beside the members."""

    def __init__(self, name, bootstrap_servers):
        self.name = name
        self.bootstrap_servers = bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        self._numbers = count(1)

    def names(self):
        """Return names of a topic and of a group that nobody uses."""
        number = next(self._numbers)
        return f"topic-{number}", f"group-{number}"

    def create_topic(self, name, partitions):
        (created,) = self.admin.create_topics([NewTopic(name, partitions, 3)]).values()
        created.result(PATIENCE_S)

    def produce(self, topic, partitions, per_partition):
        """Append to each partition."""
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for partition in range(partitions):
            values = [f"value-{number}" for number in range(per_partition)]
            self._send(producer, topic, partition, values)

    @staticmethod
    def _send(producer, topic, partition, values):
        errors = []
        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(PATIENCE_S) == 0
        assert errors == [None] * len(values)

    def committed(self, group):
        """Return the committed offsets of a group by partition."""
        asked = [ConsumerGroupTopicPartitions(group)]
        (answer,) = self.admin.list_consumer_group_offsets(asked).values()
        found = answer.result(PATIENCE_S).topic_partitions
        return {one.partition: one.offset for one in found}

    def groups(self):
        """Return the names of all groups."""
        return [one.group_id for one in self.admin.list_consumer_groups().result(PATIENCE_S).valid]

    def state(self, group):
        """Return the name of a group's state."""
        return self._described(group).state.name

    def assignor(self, group):
        """Return the name of the strategy that the members have agreed on."""
        return self._described(group).partition_assignor

    def _described(self, group):
        (answer,) = self.admin.describe_consumer_groups([group]).values()
        return answer.result(PATIENCE_S)


class Member:
    """A process that is a member of a group. Its events are read by a thread."""

    def __init__(self, command, log):
        self.events = []
        self.owned = set()
        self.revoked = []
        self.records = []
        self.is_kcat = "kcat" in Path(command[0]).name
        self._changed = threading.Condition()
        self._changed_ms = 0.0
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if self.is_kcat else self._log,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self._take(line.strip())
                self._changed.notify_all()

    def _take(self, line):
        change = KCAT_CHANGE.match(line)
        if change:
            numbers = [int(number) for number in re.findall(r"\[(\d+)\]", change.group(2))]
            event = {"event": f"{change.group(1).removesuffix('e')}ed", "partitions": numbers}
        elif line.startswith("{"):
            event = json.loads(line)
        else:
            return
        self.events.append(event)
        if event["event"] in {"assigned", "revoked"}:
            self._changed_ms = now_ms()
        match event["event"]:
            case "assigned":
                self.owned |= set(event["partitions"])
            case "revoked":
                self.owned -= set(event["partitions"])
                self.revoked += event["partitions"]
            case "record":
                self.records.append((event["partition"], event["offset"]))

    def wait_until_owns(self, number):
        """Wait until the member has so many partitions; returns when it was told so."""
        with self._changed:
            reached = self._changed.wait_for(lambda: len(self.owned) == number, PATIENCE_S)
            assert reached, f"{number} partitions wanted: {self._last_said()}"
            return self._changed_ms

    def wait_until_read(self, number):
        """Wait until the member has read so many records."""
        with self._changed:
            reached = self._changed.wait_for(lambda: len(self.records) >= number, PATIENCE_S)
            assert reached, f"{number} records wanted: {self._last_said()}"

    def _last_said(self):
        """Return the last events and what the member has logged last, for a message."""
        said = Path(self._log.name).read_text(errors="replace")[-2_000:]
        return f"{self.owned} are owned, {len(self.events)} events end with {self.events[-20:]}; {said}"

    def has_told(self, name):
        """Return whether the member has told an event of this name."""
        with self._changed:
            return any(event["event"] == name for event in self.events)

    def kill(self):
        """End it without a word."""
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def leave(self):
        """Let it leave and end."""
        if self.is_kcat:
            self._process.send_signal(signal.SIGTERM)
        else:
            self._process.stdin.write("leave\n")
            self._process.stdin.flush()
        assert self._process.wait(PATIENCE_S) == 0
        self._reader.join(PATIENCE_S)

    def close(self):
        self._process.kill()
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()


@contextmanager
def simulated(run_simulator):
    options = [word for item in CONFIGS.items() for word in ("--config", "=".join(item))]
    with run_simulator(*options) as running:
        yield Side("sim", running.bootstrap_servers)


@contextmanager
def real(run_real_kafka):
    with run_real_kafka(CONFIGS) as cluster:
        yield Side("kafka", cluster.bootstrap_servers)


@pytest.fixture(scope="session", params=["sim", pytest.param("kafka", marks=pytest.mark.real_kafka)])
def side(request, run_simulator, run_real_kafka):
    """The simulator, then a real Kafka."""
    opened = simulated(run_simulator) if request.param == "sim" else real(run_real_kafka)
    with opened as running:
        yield running


class Programs:
    """The commands of the members, made when they are first asked for, by any thread."""

    def __init__(self, find_program, kafka_class_path, build_go, directory):
        self._find_program = find_program
        self._kafka_class_path = kafka_class_path
        self._build_go = build_go
        self._directory = directory
        self._lock = threading.Lock()
        self._made = {}

    def command(self, kind, role):
        """Return the first words of the command of a kind of member in a role."""
        make = {"java": self._java, "franz_go": self._franz_go, "kcat": self._kcat}.get(kind)
        if make is None:
            return [sys.executable, str(MEMBERS / f"{kind}_{role}_member.py")]
        with self._lock:
            if kind not in self._made:
                self._made[kind] = make()
        return [word.format(role=role, Role=role.capitalize()) for word in self._made[kind]]

    def _java(self):
        jars = self._kafka_class_path()
        sources = [str(source) for source in (MEMBERS / "java").glob("*.java")]
        subprocess.run(
            ["javac", "-cp", jars, "-d", str(self._directory), *sources], check=True, timeout=BUILD_TIMEOUT_S
        )
        return ["java", "-Xmx64m", *QUICK_JVM, "-cp", f"{self._directory}:{jars}", "{Role}Member"]

    def _franz_go(self):
        self._build_go(MEMBERS / "franz_go", self._directory)
        return [f"{self._directory}/{{role}}_member"]

    def _kcat(self):
        return [self._find_program("kcat", "kcat")]


class Processes:
    """Starts members, and ends at its end those that run."""

    def __init__(self, programs, directory):
        self._programs = programs
        self._directory = directory
        self._started = []

    def start(self, kind, role, *arguments):
        """Start a member of a kind of client in a role."""
        log = self._directory / f"member-{len(self._started) + 1}.log"
        words = [str(argument) for argument in arguments]
        member = Member([*self._programs.command(kind, role), *words], log)
        self._started.append(member)
        return member

    def close(self):
        for member in self._started:
            member.close()


@pytest.fixture(scope="session")
def open_processes(find_program, kafka_class_path, build_go, tmp_path_factory):
    """Return a function that returns `Processes`, to be closed."""
    directory = tmp_path_factory.mktemp("programs")
    programs = Programs(find_program, kafka_class_path, build_go, directory)
    return lambda: Processes(programs, tmp_path_factory.mktemp("members"))


class ToolRunner:
    """One JVM for all of Kafka's tools, because most of a tool's time is the start of its JVM."""

    def __init__(self, java, log):
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [*java, str(TOOL_RUNNER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self._pool = ThreadPoolExecutor(1)

    def run(self, name, *arguments):
        """Run a tool; returns its exit code and what it has printed to stdout and to stderr."""
        self._process.stdin.write("\t".join([name, *arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._pool.submit(self._process.stdout.readline).result(TOOL_TIMEOUT_S)
        code, out, err = answer.split("\t")
        return int(code), b64decode(out).decode(), b64decode(err).decode()

    def close(self):
        self._process.kill()
        self._process.wait(PATIENCE_S)
        self._pool.shutdown()
        self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()


@pytest.fixture(scope="session")
def tools_java(kafka_class_path):
    """The first words of a command that runs a class of Kafka's tools."""
    return ["java", *QUICK_JVM, "-cp", kafka_class_path("kafka-tools")]


@pytest.fixture(scope="session")
def tool_runner(tools_java, tmp_path_factory):
    with closing(ToolRunner(tools_java, tmp_path_factory.mktemp("tools") / "log")) as running:
        yield running


@pytest.fixture(scope="session")
def tool(side, tool_runner):
    """Return a function that runs a tool and returns its stdout, or the stderr of one that fails."""

    def run(name, *arguments, code=0):
        told = ("--bootstrap-server", side.bootstrap_servers, *map(str, arguments))
        ended, out, err = tool_runner.run(name, *told)
        assert ended == code, out + err
        return err if code else out

    return run


def pytest_collection_modifyitems(items):
    """Leave all but one member to the soak: the other families have tests of their own in ../."""
    for item in items:
        if item.nodeid.startswith("tests/clients/matrix/") and "[sim-franz_go-range]" not in item.name:
            item.add_marker(pytest.mark.soak(part="clients"))

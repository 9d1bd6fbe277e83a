"""Groups with short waits, and their members, each a process of its own."""

import json
import queue
import subprocess
import sys
import threading
from functools import cache
from itertools import count
from pathlib import Path

import pytest

SESSION_MS = 45_000
"""Long enough that a busy machine loses nobody, and well below `PATIENCE_S`: librdkafka that closes
while it looks for the coordinator says nothing to the group, and its session ends by time."""
HEARTBEAT_MS = 200
PATIENCE_S = 120
OFFSETS_PARTITIONS = 4
MEMBER = Path(__file__).parent / "member.py"
JAVA_MEMBER = Path(__file__).parent / "JavaMember.java"
JAVA = "java"
CLASSIC_CLIENTS = ("confluent_kafka", "kafka_python", "aiokafka")
CONSUMER_PROTOCOL_CLIENTS = ("confluent_kafka_of_the_consumer_protocol", JAVA)
_numbers = count(1)


class Member:
    """A consumer's process; what it tells is taken off `events` in order."""

    def __init__(self, command):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._lines = queue.SimpleQueue()
        self.events = []
        self.assignment = None
        self.values = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def _take(self):
        event = self._lines.get(timeout=PATIENCE_S)
        assert event is not None, "the member has ended"
        self.events.append(event)
        if event["event"] == "assignment":
            self.assignment = event["partitions"]
        elif event["event"] == "value":
            self.values.append(event["value"])

    def wait(self, condition):
        """Take in what the member tells until the condition holds."""
        while not condition():
            self._take()
        return self

    def wait_for_partitions(self, number):
        return self.wait(lambda: self.assignment is not None and len(self.assignment) == number)

    def wait_for_values(self, values):
        return self.wait(lambda: set(self.values) >= set(values))

    def commit(self):
        done = self.events.count({"event": "committed"})
        self._say("commit")
        self.wait(lambda: self.events.count({"event": "committed"}) > done)

    def leave(self):
        """Let it close its consumer and end."""
        self._say("leave")
        assert self._process.wait(PATIENCE_S) == 0

    def _say(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def kill(self):
        """End it without a word to anybody (SIGKILL)."""
        self._process.kill()
        self._process.wait()

    def end(self):
        self.kill()
        self._reader.join()
        self._process.stdin.close()
        self._process.stdout.close()


class Groups:
    """A group of one test with its topic."""

    def __init__(self, simulator, client, members, java):
        self._java = java
        self.simulator = simulator
        self.client = client
        self.name = f"group-{next(_numbers)}"
        self.topic = simulator.create_topic(partitions=4)
        self._members = members

    def member(self, strategy="range", instance=None):
        """Start a consumer that subscribes."""
        settings = {
            "bootstrap_servers": self.simulator.bootstrap_servers,
            "group": self.name,
            "topic": self.topic,
            "session_ms": SESSION_MS,
            "heartbeat_ms": HEARTBEAT_MS,
            "strategy": strategy,
            "instance": instance,
        }
        if self.client == JAVA:
            told = (self.simulator.bootstrap_servers, self.name, self.topic, instance or "")
            command = [*self._java(), *told]
        else:
            command = [sys.executable, "-W", "ignore", str(MEMBER), self.client, json.dumps(settings)]
        member = Member(command)
        self._members.append(member)
        return member

    @property
    def coordinator(self):
        """The broker that coordinates the group."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.simulator.bootstrap_servers})
        return admin.describe_consumer_groups([self.name])[self.name].result().coordinator.id

    def restart_coordinator(self, how):
        """End the coordinator's process and start it again; another broker takes over."""
        broker = self.coordinator
        self.simulator.control.request("POST", f"/brokers/{broker}/{how}")
        self.simulator.control.request("POST", f"/brokers/{broker}/start", {"end_session": True})
        assert self.coordinator != broker

    def produce(self, *values):
        """Write the values to the partitions in turn; return them."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.simulator.bootstrap_servers})
        for number, value in enumerate(values):
            producer.produce(self.topic, value, partition=number % 4)
        assert producer.flush(PATIENCE_S) == 0
        return values


@pytest.fixture(scope="session")
def quick_simulator(run_simulator):
    options = {
        "group.initial.rebalance.delay.ms": 100,
        "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
        "group.consumer.min.session.timeout.ms": SESSION_MS,
        "group.consumer.session.timeout.ms": SESSION_MS,
        "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS,
        "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    }
    words = [word for key, value in options.items() for word in ("--config", f"{key}={value}")]
    with run_simulator(*words) as running:
        yield running


@pytest.fixture(scope="session")
def java_member(kafka_class_path, tmp_path_factory):
    """Return a function that returns the command of Kafka's own consumer, without its arguments."""

    @cache
    def command():
        jars = kafka_class_path()
        classes = tmp_path_factory.mktemp("classes")
        subprocess.run(["javac", "-cp", jars, "-d", str(classes), str(JAVA_MEMBER)], check=True)
        quick = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *quick, "-cp", f"{classes}:{jars}", "JavaMember"]

    return command


@pytest.fixture(params=[*CLASSIC_CLIENTS, *CONSUMER_PROTOCOL_CLIENTS])
def groups(request, quick_simulator, java_member):
    members = []
    yield Groups(quick_simulator, request.param, members, java_member)
    for member in members:
        member.end()


def pytest_collection_modifyitems(items):
    """Leave all clients but librdkafka to the soak: what is claimed here is claimed of the broker."""
    for item in items:
        if item.nodeid.startswith("tests/clients/groups/") and "[confluent_kafka" not in item.name:
            item.add_marker(pytest.mark.soak(part="clients"))

"""Clients as processes of their own, against the simulator and against a real Kafka.

A member of a group is started with the bootstrap servers, its group, a topic, its session timeout and
its interval of heartbeats in ms, and its strategy: `range`, `roundrobin`, `sticky`, `cooperative-sticky`,
or `consumer` for the protocol of KIP-848, whose sessions are a configuration of the brokers. On stdout it
tells in lines of JSON what it was assigned, what was revoked, what it did; a line on its stdin makes it
leave.

What it does in the roles `group` and `transaction` is in the folders of that name; for `share` see
groups/test_share_members.py.
"""

from contextlib import closing, contextmanager
from itertools import count

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.matrix.member_processes import PATIENCE_S, QUICK_JVM, Processes, Programs
from tests.clients.matrix.tool_runner import ToolRunner

SESSION_MS = 6000
"""Session timeout of a member that a test kills, and of all members of the consumer protocol."""
LONG_SESSION_MS = 240_000
"""Session timeout of a member that stays: a busy machine may keep it from running for long."""
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


@pytest.fixture(scope="session")
def open_processes(find_program, kafka_class_path, build_go, tmp_path_factory):
    """Return a function that returns `Processes`, to be closed."""
    directory = tmp_path_factory.mktemp("programs")
    programs = Programs(find_program, kafka_class_path, build_go, directory)
    return lambda: Processes(programs, tmp_path_factory.mktemp("members"))


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

"""A Kafka Streams application counts exactly once while its instances and the brokers die."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from broker_sim_integration.cluster_under_test.polling import poll_until
from confluent_kafka import Consumer, Producer

from tests.clients.applications.conftest import SHORT_SESSION, STREAMS_GROUPS
from tools.update_schemas import DEFAULT_VERSION

pytestmark = [pytest.mark.clients, pytest.mark.soak(part="clients")]

PROGRAM = Path(__file__).with_name("WordCounts.java")
BROKERS = (1, 2, 3)
INSTANCES = 2
LINES = [f"apple pear berry-{number % 7}" for number in range(300)]
EACH = Counter(word for line in LINES for word in line.split())
PATIENCE_MS = 180_000


def application(protocol):
    return f"word-counts-{protocol}"


def group_status(cluster, protocol):
    """Return the application's group."""
    (group,) = (each for each in cluster.control.get("/status")["groups"] if each["id"] == application(protocol))
    return group


class Counts:
    """What is counted, as a reader of committed records sees it: `of` is by word, in the order of the output."""

    def __init__(self, cluster, topic):
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": f"reader of {topic}",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._consumer.subscribe([topic])
        self.of = {word: [] for word in EACH}

    def has(self, rounds):
        """Read on, and return whether each word of that many rounds of lines is counted."""
        self._read(timeout_s=0.1)
        return all(len(self.of[word]) >= rounds * number for word, number in EACH.items())

    def read_to_the_end(self):
        """Read what is there, after the last instance has ended."""
        while self._read(timeout_s=1):
            pass

    def _read(self, timeout_s):
        records = self._consumer.consume(1000, timeout_s)
        for record in records:
            assert record.error() is None or record.error().retriable(), record.error()
            if record.error() is None:
                self.of[record.key().decode()].append(int(record.value()))
        return records

    def close(self):
        self._consumer.close()


NEWEST = "4.4"


@pytest.fixture(
    scope="module",
    params=[("classic", None), ("streams", None), ("streams", NEWEST)],
    ids=["classic", "streams", f"streams-{NEWEST}-static"],
)
def group(request):
    """Return the protocol of the application's group, and the release of brokers and program; None: the default."""
    return request.param


@pytest.fixture(scope="module")
def cluster(run_simulator, group):
    release = () if group[1] is None else ("--as-version", group[1])
    with run_simulator(*SHORT_SESSION, *STREAMS_GROUPS, *release) as running:
        yield running


@pytest.fixture
def topics(cluster):
    return cluster.create_topic(partitions=2), cluster.create_topic(partitions=2)


@pytest.fixture
def counts(cluster, topics):
    counts = Counts(cluster, topics[1])
    yield counts
    counts.close()


@pytest.fixture
def instance(cluster, topics, run_java, tmp_path, group):
    """Return a context manager that runs the instance of a number; of the newest release it is a static member."""
    protocol, release = group

    def run(number):
        state = tmp_path / f"state-{number}"
        told = [cluster.bootstrap_servers, application(protocol), *topics, state, protocol]
        jars_of = {}
        if release is not None:
            told.append(f"instance-{number}")
            jars_of = {"version": DEFAULT_VERSION}
        return run_java(["kafka-streams"], f"instance-{number}.log", PROGRAM, *told, **jars_of)

    return run


def test_each_word_is_counted_once_while_instances_and_brokers_die(cluster, topics, counts, instance, group):
    protocol, release = group
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    rounds = 0

    def send_lines():
        nonlocal rounds
        for number, line in enumerate(LINES):
            producer.produce(topics[0], line, key=str(number))
        assert producer.flush(PATIENCE_MS / 1000) == 0
        rounds += 1

    def all_are_counted():
        return counts.has(rounds)

    def both_are_at_it():
        transactions = cluster.control.get("/status")["transactions"]
        open_topics = [[place["topic"] for place in one["partitions"]] for one in transactions]
        return sum(topics[1] in written for written in open_topics) == INSTANCES

    with ExitStack() as running:
        running.enter_context(instance(1))
        with instance(2):
            send_lines()
            poll_until(all_are_counted, "both instances have counted", PATIENCE_MS)
            status = group_status(cluster, protocol)
            assert status["type"] == protocol
            instance_ids = {member["instance_id"] for member in status["members"]}
            assert instance_ids == ({None} if release is None else {"instance-1-1", "instance-2-1"})
            send_lines()
            poll_until(both_are_at_it, "both have counts in open transactions", PATIENCE_MS)
        running.enter_context(instance(2))
        for broker in BROKERS:
            cluster.control.request("POST", f"/brokers/{broker}/kill")
            send_lines()
            poll_until(all_are_counted, f"counted without broker {broker}", PATIENCE_MS)
            cluster.control.request("POST", f"/brokers/{broker}/start")
        poll_until(all_are_counted, "everything is counted", PATIENCE_MS)
    counts.read_to_the_end()
    assert counts.of == {word: list(range(1, rounds * n + 1)) for word, n in EACH.items()}

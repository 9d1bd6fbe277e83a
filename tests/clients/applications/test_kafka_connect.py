"""Kafka Connect, two workers: lines of a file go into a topic exactly once, and on, while brokers die."""

import json
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack

import pytest
from broker_sim_integration.cluster_under_test.polling import poll_until
from broker_sim_integration.reference.clusters.ports import free_ports
from confluent_kafka import Consumer, KafkaError, TopicPartition

pytestmark = [pytest.mark.clients, pytest.mark.soak(part="clients")]

WORKERS = (1, 2)
BROKERS = (1, 2, 3)
LINES = 200
ARTIFACTS = ("connect-runtime", "connect-file")
MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
PATIENCE_MS = 180_000
PARTITIONS = 3
REQUEST_S = 30
WORKER = """
bootstrap.servers={servers}
group.id=connect
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=3
offset.storage.replication.factor=3
status.storage.replication.factor=3
exactly.once.source.support=enabled
offset.flush.interval.ms=1000
listeners=http://127.0.0.1:{port}
"""


@pytest.fixture
def ports():
    return free_ports(len(WORKERS))


@pytest.fixture
def ask(ports):
    """Return a function that asks the first worker: method, path, body; None before it answers."""

    def ask(method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{ports[0]}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_S) as answer:
                return json.load(answer)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return None

    return ask


@pytest.fixture
def workers(cluster, ports, run_java, tmp_path):
    """Two workers, until the test ends."""
    with ExitStack() as running:
        for number, port in zip(WORKERS, ports, strict=True):
            properties = tmp_path / f"worker-{number}.properties"
            properties.write_text(WORKER.format(servers=cluster.bootstrap_servers, port=port))
            running.enter_context(run_java(ARTIFACTS, f"worker-{number}.log", MAIN, properties))
        yield


def committed_lines(servers, topic):
    """Return all lines of the topic that a reader of committed records gets."""
    settings = {"group.id": "reader", "isolation.level": "read_committed"}
    reader = Consumer(settings | {"bootstrap.servers": servers, "enable.partition.eof": True})
    reader.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    lines, ended = [], set()
    while len(ended) < PARTITIONS:
        record = reader.poll(REQUEST_S)
        if record.error() is None:
            lines.append(record.value().decode())
        elif record.error().code() == KafkaError._PARTITION_EOF:
            ended.add(record.partition())
    reader.close()
    return lines


@pytest.mark.usefixtures("workers")
def test_each_line_is_in_the_topic_once_and_goes_on_while_brokers_die(cluster, ask, tmp_path):
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    source.touch()
    sink.touch()
    topic = cluster.create_topic(partitions=PARTITIONS)
    connectors = {
        "source": {
            "connector.class": "FileStreamSource",
            "file": str(source),
            "topic": topic,
            "exactly.once.support": "required",
        },
        "sink": {
            "connector.class": "FileStreamSink",
            "file": str(sink),
            "topics": topic,
            "tasks.max": "2",
            "consumer.override.isolation.level": "read_committed",
        },
    }
    for name, config in connectors.items():
        path = f"/connectors/{name}/config"
        poll_until(lambda p=path, c=config: ask("PUT", p, c), f"{name} is there", PATIENCE_MS)

    written = []

    def write(name):
        lines = [f"{name}-{number}" for number in range(LINES)]
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        written.extend(lines)

    def has_arrived():
        return set(sink.read_text().split()) == set(written)

    write("first")
    poll_until(has_arrived, "the first lines have arrived", PATIENCE_MS)
    for broker in BROKERS:
        cluster.control.request("POST", f"/brokers/{broker}/kill")
        write(f"without-{broker}")
        poll_until(has_arrived, f"lines arrive without broker {broker}", PATIENCE_MS)
        cluster.control.request("POST", f"/brokers/{broker}/start")
    assert Counter(committed_lines(cluster.bootstrap_servers, topic)) == Counter(written)

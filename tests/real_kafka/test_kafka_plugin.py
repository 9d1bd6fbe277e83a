"""The fixture `kafka` on a real Kafka: at an address, and in containers that it starts."""

import pytest
from broker_sim_integration.reference.selection import ReferenceKind, select_reference

pytest_plugins = ["pytester"]

SUITE = """
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

def topics(kafka):
    listed = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(timeout=30)
    return {name for name in listed.topics if name.startswith("plugin-")}

@pytest.mark.kafka(topics=["plugin-orders:2:3:retention.ms=60000"])
@pytest.mark.parametrize("number", [1, 2])
def test_topics_are_new(kafka, number):
    sent = []
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all"})
    producer.produce("plugin-orders", "x", partition=1, on_delivery=lambda _, m: sent.append(m))
    assert producer.flush(30) == 0
    assert [message.offset() for message in sent] == [0]
    kafka.create_topic("plugin-more", partitions=1)
    kafka.delete_topic("plugin-more")

def test_nothing_is_left(kafka):
    deadline = time.monotonic() + 60
    while topics(kafka):  # the other brokers hear of a deletion after the controller has answered
        assert time.monotonic() < deadline

def test_verb(kafka):
    kafka.pause(1)
"""


@pytest.fixture
def run_suite(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(SUITE)

    def run(option):
        options = ("-p", "broker_sim.testing.kafka_plugin", "-W", "error")
        return pytester.runpytest_inprocess(*options, option)

    return run


@pytest.mark.soak(part="scenarios")
@pytest.mark.real_kafka
def test_tests_run_on_a_kafka_at_an_address(real_kafka, run_suite):
    result = run_suite(f"--kafka-bootstrap={real_kafka.bootstrap_servers}")
    result.assert_outcomes(passed=3, skipped=1)


@pytest.mark.soak(part="scenarios")
def test_tests_run_on_a_kafka_in_containers(run_suite, require_or_skip):
    reference = select_reference("auto", make_image=False)
    if reference.kind is not ReferenceKind.CONTAINERS:
        require_or_skip(reference.reason, needs_containers=True)
    run_suite("--kafka-containers").assert_outcomes(passed=3, skipped=1)

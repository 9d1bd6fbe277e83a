"""Clients talk to a cluster that advertises the API versions of an older release."""

import gc
import warnings

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentPartition

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    # It does not close the pair of sockets that wakes its thread.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TIMEOUT_S = 60
VALUES = [f"value-{number}".encode() for number in range(20)]
FETCH = 1
HIGHEST_FETCH_VERSIONS = {"2.1": 10, "2.8": 12, "3.7": 16, "4.0": 17}
OLDEST, *LATER = HIGHEST_FETCH_VERSIONS
LATER_CASES = [pytest.param(release, marks=pytest.mark.soak(part="clients")) for release in LATER]


@pytest.fixture(params=[OLDEST, *LATER_CASES])
def release(request):
    return request.param


@pytest.fixture
def simulator(run_simulator, release):
    with run_simulator("--as-version", release) as running:
        yield running


@pytest.fixture(autouse=True)
def collected_here():
    """Collect the garbage while the filters above are active, not during another test."""
    yield
    gc.collect()


def test_confluent_kafka_produces_and_consumes(simulator):
    topic = simulator.create_topic()
    delivered = []
    producer = Producer({"bootstrap.servers": simulator.bootstrap_servers, "acks": "all"})
    for value in VALUES:
        producer.produce(topic, value, on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert delivered == [None] * len(VALUES)
    consumer = Consumer(
        {"bootstrap.servers": simulator.bootstrap_servers, "group.id": "only assigns", "enable.auto.commit": False}
    )
    try:
        consumer.assign([ConfluentPartition(topic, 0, OFFSET_BEGINNING)])
        messages = consumer.consume(len(VALUES), TIMEOUT_S)
        assert [message.value() for message in messages] == VALUES
    finally:
        consumer.close()


def test_kafka_python_is_told_the_versions_of_the_release_and_works_in_them(simulator, release):
    topic = simulator.create_topic()
    servers = simulator.bootstrap_servers
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        told = admin.get_broker_version_data(1).api_versions
        assert told[FETCH][1] == HIGHEST_FETCH_VERSIONS[release]
    finally:
        admin.close()
    producer = KafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=False)
    try:
        futures = [producer.send(topic, value, partition=0) for value in VALUES]
        assert [future.get(TIMEOUT_S).offset for future in futures] == list(range(len(VALUES)))
    finally:
        producer.close(timeout=TIMEOUT_S)
    consumer = KafkaConsumer(bootstrap_servers=servers, consumer_timeout_ms=TIMEOUT_S * 1000)
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        read = [message.value for _, message in zip(VALUES, consumer, strict=False)]
        assert read == VALUES
    finally:
        consumer.close(autocommit=False)

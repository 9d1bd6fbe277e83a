"""kafka-python: produce and consume with a second implementation of the protocol."""

import gc
import warnings

import pytest

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.errors import KafkaTimeoutError, RequestTimedOutError

pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    # It does not close the pair of sockets that wakes its thread.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TIMEOUT_MS = 60_000
VALUES = [f"value-{number}".encode() * 20 for number in range(50)]


@pytest.fixture(autouse=True)
def collected_here():
    """Collect the garbage while the filters above are active, not during another test."""
    yield
    gc.collect()


@pytest.fixture
def produce(simulator):
    """Return a function that sends values and returns their offsets."""

    def send(topic, values=VALUES, **config):
        producer = KafkaProducer(bootstrap_servers=simulator.bootstrap_servers, **config)
        try:
            futures = [producer.send(topic, value, partition=0) for value in values]
            return [future.get(TIMEOUT_MS / 1000).offset for future in futures]
        finally:
            producer.close(timeout=TIMEOUT_MS / 1000)

    return send


@pytest.fixture
def consume(simulator):
    """Return a function that reads the first values of partition 0 from an offset on."""

    def read(topic, number, offset=0):
        consumer = KafkaConsumer(bootstrap_servers=simulator.bootstrap_servers, consumer_timeout_ms=TIMEOUT_MS)
        try:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, offset)
            return [message.value for _, message in zip(range(number), consumer, strict=False)]
        finally:
            consumer.close(autocommit=False)

    return read


@pytest.mark.parametrize("acks", [1, "all"])
def test_records_come_back_in_order_with_their_offsets(simulator, produce, consume, acks):
    topic = simulator.create_topic()
    assert produce(topic, acks=acks, enable_idempotence=False) == list(range(50))
    assert consume(topic, 50) == VALUES


def test_acks_0_delivers_without_an_answer(simulator, produce, consume):
    topic = simulator.create_topic()
    produce(topic, acks=0, enable_idempotence=False)
    assert consume(topic, 50) == VALUES


def test_compressed_batches_come_back(simulator, produce, consume):
    topic = simulator.create_topic()
    produce(topic, compression_type="gzip")
    assert consume(topic, 50) == VALUES


def test_idempotent_producer_writes_every_record_once(simulator, produce, consume):
    topic = simulator.create_topic()
    assert produce(topic, enable_idempotence=True) == list(range(50))
    assert consume(topic, 2, offset=48) == VALUES[48:]


def test_acks_all_times_out_when_the_followers_are_frozen(simulator, frozen_followers):
    topic = simulator.create_topic()
    producer = KafkaProducer(
        bootstrap_servers=simulator.bootstrap_servers,
        acks="all",
        retries=0,
        enable_idempotence=False,
        request_timeout_ms=4000,
        delivery_timeout_ms=5000,
    )
    try:
        assert producer.send(topic, b"before").get(TIMEOUT_MS / 1000).offset == 0
        frozen_followers(topic)
        with pytest.raises((RequestTimedOutError, KafkaTimeoutError)):
            producer.send(topic, b"after").get(TIMEOUT_MS / 1000)
    finally:
        producer.close(timeout=TIMEOUT_MS / 1000)


def test_offsets_can_be_listed(simulator, produce):
    topic = simulator.create_topic()
    produce(topic)
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=simulator.bootstrap_servers)
    try:
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 50}
    finally:
        consumer.close(autocommit=False)

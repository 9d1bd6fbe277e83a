"""confluent-kafka on a cluster whose memory is full: refused records, and what makes room again."""

import json
import threading
from contextlib import contextmanager

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

LIMIT = 8 << 20
VALUE = bytes(100_000)
FITTING = 83
"""With 75 bytes of its batch, and 120 that are counted beside it."""
TIMEOUT_S = 60


@pytest.fixture
def small(run_simulator):
    with run_simulator("--memory-limit", "8MB") as running:
        yield running


def send(small, topic, number, **config):
    """Return the errors of that many records, None for those that were taken."""
    producer = Producer({"bootstrap.servers": small.bootstrap_servers, "linger.ms": 0, "batch.size": 1, **config})
    errors = []
    for _ in range(number):
        producer.produce(topic, VALUE, partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    return errors


@contextmanager
def consumer_of(small):
    consumer = Consumer(
        {"bootstrap.servers": small.bootstrap_servers, "group.id": "only assigns", "enable.auto.commit": False}
    )
    yield consumer
    consumer.close()


def used_bytes(small):
    memory = small.control.get("/status")["memory"]
    assert memory["limit_bytes"] == LIMIT
    return memory["used_bytes"]


def has_tried(statistics):
    """Whether librdkafka has sent the same records more than once."""
    brokers = json.loads(statistics)["brokers"].values()
    return sum(broker["req"].get("Produce", 0) for broker in brokers) > 1


@pytest.fixture
def full(small):
    """Return the topic that has filled the cluster's memory."""
    topic = small.create_topic()
    errors = send(small, topic, 100, **{"message.send.max.retries": 0})
    refused = [error for error in errors if error]
    assert len(errors) - len(refused) == FITTING
    assert {error.code() for error in refused} == {KafkaError.KAFKA_STORAGE_ERROR}
    assert LIMIT - 2 * len(VALUE) < used_bytes(small) <= LIMIT
    return topic


def test_refused_records_are_not_in_the_log_and_the_others_are_read(small, full):
    with consumer_of(small) as consumer:
        consumer.assign([TopicPartition(full, 0, OFFSET_BEGINNING)])
        values = []
        while len(values) < FITTING:
            values += [message.value() for message in consumer.consume(FITTING, TIMEOUT_S)]
        assert values == [VALUE] * FITTING
        watermarks = consumer.get_watermark_offsets(TopicPartition(full, 0), timeout=TIMEOUT_S)
        assert watermarks == (0, FITTING)


@pytest.mark.parametrize("what", ["topic", "records"])
def test_client_that_retries_succeeds_when_there_is_room_again(small, full, what):
    other = small.create_topic()
    config = {"bootstrap.servers": small.bootstrap_servers, "statistics.interval.ms": 50}
    tried = threading.Event()
    producer = Producer({**config, "stats_cb": lambda text: has_tried(text) and tried.set()})
    delivered = []
    producer.produce(other, VALUE, on_delivery=lambda error, _: delivered.append(error))
    while not tried.is_set():
        producer.poll(TIMEOUT_S)
    assert delivered == []
    admin = AdminClient({"bootstrap.servers": small.bootstrap_servers})
    if what == "topic":
        admin.delete_topics([full])[full].result(TIMEOUT_S)
    else:
        request = [TopicPartition(full, 0, FITTING)]
        admin.delete_records(request)[request[0]].result(TIMEOUT_S)
    assert producer.flush(TIMEOUT_S) == 0
    assert delivered == [None]
    assert used_bytes(small) < LIMIT / 2

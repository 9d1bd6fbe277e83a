"""kafka-python logs in with what `client_config` gives."""

import gc
import warnings

import pytest

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer

pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    # It does not close the pair of sockets that wakes its thread.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TIMEOUT_S = 30


@pytest.fixture(autouse=True)
def collected_here():
    """Collect the garbage while the filters above are active, not during another test."""
    yield
    gc.collect()


def test_kafka_python(cluster, mechanism):
    config = cluster.client_config("kafka-python", user="audit", mechanism=mechanism)
    producer = KafkaProducer(**config)
    producer.send("t", b"kafka-python").get(TIMEOUT_S)
    producer.close()
    consumer = KafkaConsumer("t", **config, auto_offset_reset="earliest", consumer_timeout_ms=30_000)
    assert next(consumer).topic == "t"
    consumer.close()


def test_kafka_python_over_tls(encrypted):
    producer = KafkaProducer(**encrypted.client_config("kafka-python"))
    producer.send("t", b"kafka-python").get(TIMEOUT_S)
    producer.close()


def test_kafka_python_with_a_token(with_tokens):
    producer = KafkaProducer(**with_tokens.client_config("kafka-python", user="billing"))
    producer.send("t", b"kafka-python").get(TIMEOUT_S)
    producer.close()

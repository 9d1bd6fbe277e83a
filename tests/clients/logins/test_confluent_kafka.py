"""confluent-kafka logs in with what `client_config` gives."""

from confluent_kafka import Consumer, KafkaError, Producer

TIMEOUT_S = 30


def test_confluent_kafka(cluster, mechanism):
    config = cluster.client_config("confluent", user="billing", mechanism=mechanism)
    producer = Producer(config)
    producer.produce("t", b"confluent")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**config, "group.id": mechanism, "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    message = consumer.poll(TIMEOUT_S)
    consumer.close()
    assert message is not None
    assert message.error() is None


def test_confluent_kafka_is_told_of_a_wrong_password(cluster):
    errors = []
    config = cluster.client_config("confluent", user="billing")
    producer = Producer({**config, "sasl.password": "wrong", "error_cb": errors.append, "log_level": 0})
    while not errors:
        producer.poll(0.1)
    assert errors[0].code() == KafkaError._AUTHENTICATION
    assert "Authentication failed: Invalid username or password" in errors[0].str()


def test_confluent_kafka_over_tls(encrypted):
    producer = Producer(encrypted.client_config("confluent"))
    producer.produce("t", b"confluent")
    assert producer.flush(TIMEOUT_S) == 0


def test_confluent_kafka_with_a_token(with_tokens):
    producer = Producer(with_tokens.client_config("confluent", user="billing"))
    producer.produce("t", b"confluent")
    assert producer.flush(TIMEOUT_S) == 0

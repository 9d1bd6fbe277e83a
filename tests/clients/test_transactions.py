"""confluent-kafka's transactional producer: what committed readers see, zombies, offsets."""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

pytestmark = pytest.mark.clients
TIMEOUT_S = 60


def transactional(simulator, transactional_id):
    producer = Producer({"bootstrap.servers": simulator.bootstrap_servers, "transactional.id": transactional_id})
    producer.init_transactions(TIMEOUT_S)
    return producer


def send(producer, topic, *values):
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def consumer_of(simulator, group_id, **config):
    return Consumer(
        {
            "bootstrap.servers": simulator.bootstrap_servers,
            "group.id": group_id,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            **config,
        }
    )


def read(consumer, number):
    """Return the next messages; there have to be as many."""
    messages = []
    while len(messages) < number:
        batch = consumer.consume(number - len(messages), TIMEOUT_S)
        assert batch, f"only {len(messages)} of {number} records came"
        messages += batch
    assert not any(message.error() for message in messages)
    return messages


@pytest.mark.parametrize(
    ("isolation", "values"),
    [("read_committed", [b"kept", b"last"]), ("read_uncommitted", [b"kept", b"dropped", b"last"])],
)
def test_aborted_records_are_seen_by_uncommitted_readers_only(simulator, isolation, values):
    topic = simulator.create_topic()
    producer = transactional(simulator, topic)
    for value, end in (
        (b"kept", producer.commit_transaction),
        (b"dropped", producer.abort_transaction),
        (b"last", producer.commit_transaction),
    ):
        producer.begin_transaction()
        send(producer, topic, value)
        end(TIMEOUT_S)
    consumer = consumer_of(simulator, topic, **{"isolation.level": isolation})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert [message.value() for message in read(consumer, len(values))] == values
    consumer.close()


def test_second_producer_of_an_id_fences_the_first(simulator):
    topic = simulator.create_topic()
    zombie = transactional(simulator, topic)
    zombie.begin_transaction()
    send(zombie, topic, b"of the zombie")
    heir = transactional(simulator, topic)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(TIMEOUT_S)
    assert refused.value.args[0].code() == KafkaError._FENCED
    heir.begin_transaction()
    send(heir, topic, b"of the heir")
    heir.commit_transaction(TIMEOUT_S)
    consumer = consumer_of(simulator, topic)
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert [message.value() for message in read(consumer, 1)] == [b"of the heir"]
    consumer.close()


def test_offsets_are_committed_and_dropped_with_their_transactions(simulator):
    source, sink = simulator.create_topic(), simulator.create_topic()
    plain = Producer({"bootstrap.servers": simulator.bootstrap_servers})
    send(plain, source, b"1", b"2", b"3")
    producer = transactional(simulator, sink)

    def transform(count, end):
        consumer = consumer_of(simulator, source)
        consumer.subscribe([source])
        messages = read(consumer, count)
        producer.begin_transaction()
        send(producer, sink, *(message.value() * 2 for message in messages))
        position = [TopicPartition(source, 0, messages[-1].offset() + 1)]
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), TIMEOUT_S)
        end(TIMEOUT_S)
        consumer.close()

    transform(2, producer.commit_transaction)
    transform(1, producer.abort_transaction)
    transform(1, producer.commit_transaction)
    consumer = consumer_of(simulator, sink)
    consumer.assign([TopicPartition(sink, 0, 0)])
    assert [message.value() for message in read(consumer, 3)] == [b"11", b"22", b"33"]
    consumer.close()

"""Transforms in transactions by confluent-kafka; see ../transactions/conftest.py for what it is told."""

import sys
import threading

from confluent_consumer import subscribed
from confluent_kafka import KafkaException, Producer, TopicPartition
from telling import tell, when_told_to_leave

TIMEOUT_S = 120
*consuming, sink, transactional_id, transaction_timeout_ms = sys.argv[1:]


def new_producer():
    producer = Producer(
        {
            "bootstrap.servers": consuming[0],
            "transactional.id": transactional_id,
            "transaction.timeout.ms": int(transaction_timeout_ms),
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def transform(producer, messages):
    values = [message.value().decode() for message in messages]
    ends = {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
    producer.begin_transaction()
    for value in values:
        producer.produce(sink, f"done {value}")
    offsets = [TopicPartition(*where, offset) for where, offset in ends.items()]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT_S)
    if f"hold {transactional_id}" in values:
        producer.flush(TIMEOUT_S)
        tell(event="open")
        threading.Event().wait()
    producer.commit_transaction(TIMEOUT_S)


def rewind(messages):
    assigned = {one.partition for one in consumer.assignment()}
    for message in reversed(messages):
        if message.partition() in assigned:
            consumer.seek(TopicPartition(message.topic(), message.partition(), message.offset()))


left = when_told_to_leave()
producer = new_producer()
consumer = subscribed(*consuming, **{"isolation.level": "read_committed"})
while not left.is_set():
    messages = [one for one in consumer.consume(100, 0.1) if one.error() is None]
    if not messages:
        continue
    try:
        transform(producer, messages)
    except KafkaException as failed:
        try:
            producer.abort_transaction(TIMEOUT_S)
        except KafkaException:
            producer = new_producer()
        rewind(messages)
        tell(event="aborted", error=str(failed))
    else:
        tell(event="committed", records=len(messages))
consumer.close()
tell(event="left")

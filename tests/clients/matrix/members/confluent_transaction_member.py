"""Transforms in transactions by confluent-kafka; see ../transactions/conftest.py for what it is told."""

import sys
import threading

from confluent_consumer import subscribed
from confluent_kafka import OFFSET_BEGINNING, KafkaException, Producer, TopicPartition
from telling import tell, when_told_to_leave

TIMEOUT_S = 120
*consuming, sink, transactional_id, transaction_timeout_ms = sys.argv[1:]
left = when_told_to_leave()
producer = Producer(
    {
        "bootstrap.servers": consuming[0],
        "transactional.id": transactional_id,
        "transaction.timeout.ms": int(transaction_timeout_ms),
        "log_level": 0,
    }
)
producer.init_transactions(TIMEOUT_S)
consumer = subscribed(*consuming, **{"isolation.level": "read_committed"})


def transform(messages):
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


def rewind():
    for committed in consumer.committed(consumer.assignment(), TIMEOUT_S):
        committed.offset = committed.offset if committed.offset >= 0 else OFFSET_BEGINNING
        consumer.seek(committed)


while not left.is_set():
    messages = [one for one in consumer.consume(100, 0.1) if one.error() is None]
    if not messages:
        continue
    try:
        transform(messages)
    except KafkaException as failed:
        if not failed.args[0].txn_requires_abort():
            raise
        producer.abort_transaction(TIMEOUT_S)
        rewind()
        tell(event="aborted", error=str(failed))
    else:
        tell(event="committed", records=len(messages))
consumer.close()
tell(event="left")

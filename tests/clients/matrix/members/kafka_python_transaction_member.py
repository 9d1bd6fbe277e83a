"""Transforms in transactions by kafka-python; see ../transactions/conftest.py for what it is told."""

import sys
import threading

from kafka import KafkaProducer
from kafka.errors import KafkaError, ProducerFencedError
from kafka.structs import OffsetAndMetadata
from kafka_python_consumer import subscribed
from telling import tell, when_told_to_leave

*consuming, sink, transactional_id, transaction_timeout_ms = sys.argv[1:]
left = when_told_to_leave()
producer = KafkaProducer(
    bootstrap_servers=consuming[0],
    transactional_id=transactional_id,
    transaction_timeout_ms=int(transaction_timeout_ms),
)
producer.init_transactions()
consumer = subscribed(*consuming, isolation_level="read_committed")


def transform(polled):
    values = [record.value.decode() for records in polled.values() for record in records]
    producer.begin_transaction()
    sent = [producer.send(sink, f"done {value}".encode()) for value in values]
    ends = {
        partition: OffsetAndMetadata(records[-1].offset + 1, "", -1)
        for partition, records in polled.items()
    }
    producer.send_offsets_to_transaction(ends, consumer.group_metadata())
    if f"hold {transactional_id}" in values:
        producer.flush()
        tell(event="open")
        threading.Event().wait()
    producer.commit_transaction()
    assert all(one.succeeded() for one in sent)
    return len(values)


def rewind():
    for partition in consumer.assignment():
        committed = consumer.committed(partition)
        if committed is None:
            consumer.seek_to_beginning(partition)
        else:
            consumer.seek(partition, committed)


while not left.is_set():
    polled = consumer.poll(timeout_ms=100)
    if not polled:
        continue
    try:
        number = transform(polled)
    except ProducerFencedError:
        raise
    except KafkaError as failed:
        producer.abort_transaction()
        rewind()
        tell(event="aborted", error=repr(failed))
    else:
        tell(event="committed", records=number)
consumer.close()
producer.close()
tell(event="left")

"""Transforms in transactions by kafka-python; see ../transactions/conftest.py for what it is told."""

import sys
import threading

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from kafka_python_consumer import subscribed
from telling import tell, when_told_to_leave

*consuming, sink, transactional_id, transaction_timeout_ms = sys.argv[1:]


def new_producer():
    producer = KafkaProducer(
        bootstrap_servers=consuming[0],
        transactional_id=transactional_id,
        transaction_timeout_ms=int(transaction_timeout_ms),
    )
    producer.init_transactions()
    return producer


def transform(producer, polled):
    values = [record.value.decode() for records in polled.values() for record in records]
    producer.begin_transaction()
    sent = [producer.send(sink, f"done {value}".encode()) for value in values]
    ends = {partition: OffsetAndMetadata(records[-1].offset + 1, "", -1) for partition, records in polled.items()}
    producer.send_offsets_to_transaction(ends, consumer.group_metadata())
    producer.flush()
    for one in sent:
        one.get()
    if f"hold {transactional_id}" in values:
        tell(event="open")
        threading.Event().wait()
    producer.commit_transaction()
    return len(values)


def rewind(polled):
    for partition, records in polled.items():
        if partition in consumer.assignment():
            consumer.seek(partition, records[0].offset)


left = when_told_to_leave()
producer = new_producer()
consumer = subscribed(*consuming, isolation_level="read_committed")
while not left.is_set():
    polled = consumer.poll(timeout_ms=100)
    if not polled:
        continue
    try:
        number = transform(producer, polled)
    except KafkaError as failed:
        try:
            producer.abort_transaction()
        except KafkaError:
            producer.close(timeout=0)
            producer = new_producer()
        rewind(polled)
        tell(event="aborted", error=repr(failed))
    else:
        tell(event="committed", records=number)
consumer.close()
producer.close()
tell(event="left")

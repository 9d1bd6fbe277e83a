"""A member of a group by kafka-python; see ../groups/conftest.py for what it is told and what it tells."""

import sys

from kafka.structs import OffsetAndMetadata
from kafka_python_consumer import subscribed
from telling import tell, when_told_to_leave

left = when_told_to_leave()
consumer = subscribed(*sys.argv[1:])
while not left.is_set():
    for partition, records in consumer.poll(timeout_ms=100).items():
        for record in records:
            tell(event="record", partition=partition.partition, offset=record.offset)
            consumer.commit({partition: OffsetAndMetadata(record.offset + 1, "", -1)})
            tell(event="committed", partition=partition.partition, offset=record.offset + 1)
consumer.close()
tell(event="left")

"""A program of kafka-python: 20 records through a group, then an idle minute."""

import os
import time

from kafka import KafkaConsumer, KafkaProducer

servers = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
producer = KafkaProducer(bootstrap_servers=servers, acks="all")
for number in range(20):
    producer.send("orders", str(number).encode())
producer.flush()
consumer = KafkaConsumer("orders", bootstrap_servers=servers, group_id="shop", auto_offset_reset="earliest")
records = []
while len(records) < 20:
    for batch in consumer.poll(timeout_ms=1000).values():
        records += batch
start = time.monotonic()
consumer.poll(timeout_ms=60_000)
print(len(records), "records,", round(time.monotonic() - start), "s idle")
consumer.close()
producer.close()

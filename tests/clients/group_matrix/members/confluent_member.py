"""A member of a group by confluent-kafka; see ../conftest.py for what it is told and what it tells."""

import json
import sys
import threading

from confluent_kafka import Consumer

servers, group, topic, session_ms, heartbeat_ms, strategy = sys.argv[1:]
configs = {
    "bootstrap.servers": servers,
    "group.id": group,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "log_level": 0,
}
if strategy == "consumer":
    configs["group.protocol"] = "consumer"
else:
    configs |= {
        "session.timeout.ms": int(session_ms),
        "heartbeat.interval.ms": int(heartbeat_ms),
        "partition.assignment.strategy": strategy,
    }
left = threading.Event()


def tell(**event):
    print(json.dumps(event), flush=True)


def listen():
    sys.stdin.readline()
    left.set()


def told(name):
    def tells(_consumer, partitions):
        tell(event=name, partitions=[one.partition for one in partitions])

    return tells


threading.Thread(target=listen, daemon=True).start()
consumer = Consumer(configs)
consumer.subscribe(
    [topic], on_assign=told("assigned"), on_revoke=told("revoked"), on_lost=told("revoked")
)
while not left.is_set():
    message = consumer.poll(0.1)
    if message is not None and message.error() is None:
        tell(event="record", partition=message.partition(), offset=message.offset())
        consumer.commit(message=message, asynchronous=False)
        tell(event="committed", partition=message.partition(), offset=message.offset() + 1)
consumer.close()
tell(event="left")

"""`send_offsets_to_transaction` does not return if the group's coordinator has stopped since the last call.

    python offsets_to_a_former_coordinator.py 127.0.0.1:9092,... "broker-sim ctl stop {}"
    python offsets_to_a_former_coordinator.py 127.0.0.1:19092,... "docker compose stop kafka-{}"

Needs three brokers, a command that stops the broker whose id replaces {}, and confluent-kafka 2.10 or newer.
From that version on librdkafka removes a broker that is no longer in the cluster's metadata, but still regards it as
the group's coordinator: the next call waits for a connection that is never opened, and its timeout does not end it.
See librdkafka's issues 5511 and 5456. Chaos with two correct workers found it at seed 15, which stops a broker.
"""

import subprocess
import sys
import threading
from uuid import uuid4

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

LIMIT_S = 60
TIMEOUT_S = 10


def main(servers, stop):
    """Send offsets in a transaction, stop the group's coordinator, and do it again."""
    topic = f"offsets-{uuid4().hex[:8]}"
    common = {"bootstrap.servers": servers}
    admin = AdminClient(common)
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result()
    consumer = Consumer({**common, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([topic])
    producer = Producer({**common, "transactional.id": topic})
    producer.init_transactions(LIMIT_S)
    while not consumer.assignment():
        consumer.poll(0.2)

    def transaction(offset):
        producer.begin_transaction()
        producer.produce(topic, b"a record")
        offsets = [TopicPartition(topic, 0, offset)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT_S)
        producer.commit_transaction(LIMIT_S)

    transaction(1)
    coordinator = admin.describe_consumer_groups([topic])[topic].result().coordinator.id
    print(f"broker {coordinator} is the coordinator of the group, it is stopped", flush=True)
    subprocess.run(stop.format(coordinator), shell=True, check=True, stdout=subprocess.DEVNULL)
    while coordinator in producer.list_topics(timeout=LIMIT_S).brokers:
        consumer.poll(0.2)
    for offset in range(2, 5):  # the first call may learn of the change in time
        thread = threading.Thread(target=transaction, args=(offset,), daemon=True)
        thread.start()
        thread.join(LIMIT_S)
        if thread.is_alive():
            print(f"WRONG: send_offsets_to_transaction has not returned in {LIMIT_S} s, its timeout is {TIMEOUT_S} s")
            return
    print("it is right: offsets were sent to the new coordinator")


if __name__ == "__main__":
    main(*sys.argv[1:])

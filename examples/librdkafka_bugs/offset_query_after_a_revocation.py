"""A partition that is revoked and comes back at once is read again from its first record.

    python offset_query_after_a_revocation.py 127.0.0.1:9092

Needs one broker. A consumer without a committed offset asks for the first one; a broker that holds a fetch answers it
later. If the partition is revoked meanwhile, librdkafka takes the response for outdated and asks again after 500 ms,
although the partition is not assigned any more. If it is assigned again by then, say at a committed offset, the answer
moves the consumer back to the first record (or on to the last one, as `auto.offset.reset` says), and commits follow it.
Chaos with two correct workers, which run their threads in a drawn order, found it at seed 2334: it freezes one of them
while it joins. Seen on three nodes of Kafka 4.4.0 with confluent-kafka 2.16.1, 2.13.2 and 2.5.3.
"""

import sys
from uuid import uuid4

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

RECORDS = 10
COMMITTED = 4
LIMIT_S = 15


def main(servers):
    """Revoke a partition while the consumer asks for its first offset, and assign it again at `COMMITTED`."""
    topic = f"orders-{uuid4().hex[:8]}"
    common = {"bootstrap.servers": servers}
    admin = AdminClient(common)
    broker = min(admin.list_topics().brokers)  # one for both partitions
    admin.create_topics([NewTopic(topic, 2, replica_assignment=[[broker], [broker]])])[topic].result()
    producer = Producer(common)
    for number in range(RECORDS):
        producer.produce(topic, str(number), partition=0)
    producer.flush()
    consumer = Consumer({**common, "group.id": topic, "fetch.wait.max.ms": 3_000, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 1, 0)])
    consumer.poll(2)  # the fetch of partition 1 waits for a record
    consumer.incremental_assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    consumer.poll(0.5)
    consumer.incremental_unassign([TopicPartition(topic, 0)])
    producer.produce(topic, "a record", partition=1)
    producer.flush()
    consumer.poll(0.2)  # the fetch is answered, and then the first offset
    consumer.incremental_assign([TopicPartition(topic, 0, COMMITTED)])
    records = consumer.consume(2 * RECORDS, LIMIT_S)
    offsets = [record.offset() for record in records if record.partition() == 0]
    if offsets == [*range(COMMITTED, RECORDS)]:
        print("it is right: each record was read once")
    else:
        print(f"WRONG: offsets {offsets} were read of a partition that was assigned at {COMMITTED}")


if __name__ == "__main__":
    main(*sys.argv[1:])

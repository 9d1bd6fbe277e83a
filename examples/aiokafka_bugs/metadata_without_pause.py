"""A producer asks for metadata as fast as it is answered while a partition has no leader.

    python metadata_without_pause.py 127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094 "docker stop kafka-{}"

Needs a Kafka of two brokers or more, a command that stops the broker of a given number, and Python with aiokafka.
`Sender._sender_routine` forces a metadata update and waits only for that, not for `retry_backoff_ms`: a core of the
client is busy, and so are the brokers, until there is a leader.
"""

import asyncio
import sys
from uuid import uuid4

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

WATCHED_S = 20
RETRY_BACKOFF_MS = 100


async def main(servers, stop):
    """Stop the only replica's broker, send a record, count the requests for metadata."""
    topic = f"no-leader-{uuid4().hex[:8]}"
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    await admin.close()
    counts = [0]
    producer = AIOKafkaProducer(bootstrap_servers=servers, retry_backoff_ms=RETRY_BACKOFF_MS)
    await producer.start()
    await producer.send_and_wait(topic, b"first")
    leader = producer.client.cluster.leader_for_partition(TopicPartition(topic, 0))
    update = producer.client._metadata_update

    async def counted_update(*arguments):
        counts[-1] += 1
        return await update(*arguments)

    producer.client._metadata_update = counted_update
    stopping = await asyncio.create_subprocess_exec(*stop.format(leader).split())
    await stopping.wait()
    sent = await producer.send(topic, b"second")
    for _ in range(WATCHED_S):
        counts.append(0)
        await asyncio.sleep(1)
    print(f"requests for metadata, second by second: {counts[1:]}")
    print("it is right" if max(counts) <= 20 else "WRONG: ten a second are asked for")
    sent.cancel()
    producer.client._metadata_update = update
    try:
        await producer.stop()
    except KafkaError as error:
        print(f"stop: {error!r}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

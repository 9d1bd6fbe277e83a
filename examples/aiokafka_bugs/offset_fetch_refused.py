"""aiokafka treats an OffsetFetch that fails as a whole as "nothing is committed".

    python offset_fetch_refused.py 127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094

Needs a Kafka of two brokers or more, and Python with aiokafka. From version 2 on the response has a top-level
error code, which `GroupCoordinator._do_fetch_commit_offsets` ignores. So a consumer whose coordinator has moved or
is loading reads everything again, or with `latest` skips records.
"""

import asyncio
import sys
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition


async def main(servers):
    """Commit offset 3, then ask a broker that is no longer the group's coordinator for it."""
    topic = group = f"offset-fetch-{uuid4().hex[:8]}"
    place = TopicPartition(topic, 0)
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(topic, b"a record")
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False)
    consumer.assign([place])
    async with consumer:
        await consumer.commit({place: 3})
        print(f"committed, as its coordinator says: {await consumer.committed(place)}")
        # As for a moment after the group has moved to another broker: the client knows the old one.
        coordinator = consumer._coordinator
        brokers = {broker.nodeId for broker in consumer._client.cluster.brokers()}
        coordinator.coordinator_id = min(brokers - {coordinator.coordinator_id})
        committed = await consumer.committed(place)
        print(f"committed, when another broker was asked first: {committed}")
    print("it is right" if committed == 3 else "WRONG: 3 is committed")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

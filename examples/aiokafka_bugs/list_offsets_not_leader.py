"""After NOT_LEADER_OR_FOLLOWER to ListOffsets aiokafka asks the same broker again, for minutes.

    python list_offsets_not_leader.py 127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094

Needs a Kafka of two brokers or more, and Python with aiokafka. `Fetcher._update_fetch_positions`
does not ask for new metadata after that error. So a consumer that looks up the first offset of a partition whose
leader has just moved hangs until its metadata is `metadata_max_age_ms` old, by default five minutes.
"""

import asyncio
import sys
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

OLD_S = 20
"""`metadata_max_age_ms` of this client, in seconds."""


async def main(servers):
    """Read a record with a client whose metadata has a former leader."""
    topic = f"list-offsets-{uuid4().hex[:8]}"
    place = TopicPartition(topic, 0)
    loop = asyncio.get_running_loop()
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(topic, b"a record")
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", metadata_max_age_ms=OLD_S * 1_000
    )
    async with consumer:
        await consumer._client.set_topics([topic])
        # As for a moment after the leader has moved: the client knows the old one.
        partitions = consumer._client.cluster._partitions[topic]
        brokers = {broker.nodeId for broker in consumer._client.cluster.brokers()}
        other = min(brokers - {partitions[0].leader})
        partitions[0] = partitions[0]._replace(leader=other)
        began = loop.time()
        consumer.assign([place])
        partitions = consumer._client.cluster._partitions[topic]
        partitions[0] = partitions[0]._replace(leader=other)
        record = await consumer.getone()
        took = loop.time() - began
    print(f"{record.value} came after {took:.1f} s")
    print("it is right" if took < OLD_S / 2 else "WRONG: it had to ask for metadata at once")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

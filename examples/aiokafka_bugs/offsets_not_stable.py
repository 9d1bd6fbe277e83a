"""A read_committed consumer continues from an offset that an open transaction is about to change.

    python offsets_not_stable.py 127.0.0.1:9092

Needs a Kafka of version 2.5 or later, and Python with aiokafka. Java's consumer asks for stable offsets if
`isolation.level` is `read_committed` (KIP-447): the broker answers UNSTABLE_OFFSET_COMMIT while a transaction
has an offset of the partition, and the consumer asks again. aiokafka's newest OffsetFetch, version 3, cannot
ask for that. So a worker that takes over a partition repeats the work of a transaction that has not ended yet; or
of one that has, for a moment after the group has moved to another coordinator.
"""

import asyncio
import sys
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

OPEN_S = 3


async def main(servers):
    """Ask for an offset while an open transaction is committing the next one."""
    topic = group = f"stable-{uuid4().hex[:8]}"
    place = TopicPartition(topic, 0)
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=group)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers, group_id=group, enable_auto_commit=False, isolation_level="read_committed"
    )
    consumer.assign([place])
    async with producer:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"a record", partition=0)
        async with consumer:
            await consumer.commit({place: 1})
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({place: 2}, group)
            asked = asyncio.create_task(consumer.committed(place))
            await asyncio.sleep(OPEN_S)
            was_answered = asked.done()
            await producer.commit_transaction()
            offset = await asked
    print(f"answered {'before' if was_answered else 'after'} the transaction's end: {offset}")
    print("it is right" if offset == 2 else "WRONG: the transaction had committed 2")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

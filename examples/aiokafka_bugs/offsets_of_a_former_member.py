"""A producer can commit offsets in a transaction for a group that its consumer has left.

    python offsets_of_a_former_member.py 127.0.0.1:9092

Needs a Kafka, and Python with aiokafka. aiokafka sends TxnOffsetCommit in version 0, without member
and generation (KIP-447), so the broker cannot reject it. With one transactional id per worker, a record is copied
twice if its partition moves to another worker during the transaction.
"""

import asyncio
import sys
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition


async def begin_to_copy(servers, names, worker):
    """Return a producer whose open transaction has the copy and the offset."""
    source, copies, group = names
    consumer = AIOKafkaConsumer(
        source, bootstrap_servers=servers, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=f"{group}-{worker}")
    await producer.start()
    async with consumer:
        record = await consumer.getone()
        await producer.begin_transaction()
        await producer.send_and_wait(copies, record.value)
    # The consumer has left its group, as if its heartbeats had been too late.
    place = TopicPartition(record.topic, record.partition)
    return producer, {place: record.offset + 1}


async def main(servers):
    """Two workers copy the same record: the first one has lost its partition before it commits."""
    names = source, copies, group = [f"{name}-{uuid4().hex[:8]}" for name in ("in", "out", "copy")]
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(source, b"a record")
    begun = [await begin_to_copy(servers, names, worker) for worker in ("worker-1", "worker-2")]
    for producer, offsets in begun[::-1]:
        await producer.send_offsets_to_transaction(offsets, group)
        await producer.commit_transaction()
        await producer.stop()
    reader = AIOKafkaConsumer(
        copies, bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    async with reader:
        batches = await reader.getmany(timeout_ms=5_000)
    count = sum(map(len, batches.values()))
    print(f"copies of one record: {count}")
    print("it is right" if count == 1 else "WRONG: the late one had to be refused")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

"""Transforms in transactions by aiokafka; see ../transactions/conftest.py for what it is told.

aiokafka's producer cannot tell the group's coordinator which member it serves (KIP-447), and its
consumer does not ask for stable offsets. So each partition has a transactional id of its own: a new
owner's producer first ends what the last one's left open, then the owner asks for the offset, by an
admin client: the consumer would answer with what it has asked for before.

aiokafka hands out records of new partitions while `on_partitions_assigned` still runs, and hands them out
once more after a `seek` there. So records are asked for only when nothing is being assigned or revoked.
But `getmany` waits for the end of a rebalance however short its timeout is: it is given up then, so that the
partitions can be revoked.
"""

import asyncio
import sys

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka_consumer import Listener, consumer_of
from telling import tell, when_told_to_leave

servers, group, source, *timing, sink, name, transaction_timeout_ms = sys.argv[1:]


POLL_S = 1


class Producers(Listener):
    """A producer per owned partition. Nothing is assigned or revoked between a poll and its commit."""

    def __init__(self, consumer, admin):
        self.between_polls = asyncio.Lock()
        self.of = {}
        self._consumer = consumer
        self._admin = admin

    async def on_partitions_revoked(self, revoked):
        async with self.between_polls:
            await self.stop()
            await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned):
        async with self.between_polls:
            for partition in assigned:
                await self.start(partition)
            await super().on_partitions_assigned(assigned)

    async def start(self, partition):
        """Begin with a new producer of a partition, at the committed offset."""
        self.of[partition] = producer = AIOKafkaProducer(
            bootstrap_servers=servers,
            transactional_id=f"{group}-{partition.partition}",
            transaction_timeout_ms=int(transaction_timeout_ms),
        )
        await producer.start()
        found = await self._admin.list_consumer_group_offsets(group, partitions=[partition])
        self._consumer.seek(partition, max(found[partition].offset, 0))

    async def stop(self):
        while self.of:
            _, producer = self.of.popitem()
            await producer.stop()


async def transform(producer, partition, records):
    values = [record.value.decode() for record in records]
    await producer.begin_transaction()
    for value in values:
        await producer.send(sink, f"done {value}".encode())
    ends = {partition: records[-1].offset + 1}
    await producer.send_offsets_to_transaction(ends, group)
    if f"hold {name}" in values:
        await producer.flush()
        tell(event="open")
        await asyncio.Event().wait()
    await producer.commit_transaction()


async def main():
    left = when_told_to_leave()
    consumer = consumer_of(servers, group, *timing, isolation_level="read_committed")
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    producers = Producers(consumer, admin)
    consumer.subscribe([source], listener=producers)
    await consumer.start()
    while not left.is_set():
        async with producers.between_polls:
            try:
                polled = await asyncio.wait_for(consumer.getmany(timeout_ms=100), POLL_S)
            except TimeoutError:
                continue
            # Those of others are handed out again, when they have a producer.
            for partition in polled.keys() & producers.of.keys():
                records = polled[partition]
                try:
                    await transform(producers.of[partition], partition, records)
                except KafkaError as failed:
                    await producers.of.pop(partition).stop()
                    await producers.start(partition)
                    print(f"aborted: {failed!r}", file=sys.stderr)
                    tell(event="aborted", error=repr(failed))
                else:
                    tell(event="committed", records=len(records))
    await consumer.stop()
    await producers.stop()
    await admin.close()
    tell(event="left")


asyncio.run(main())

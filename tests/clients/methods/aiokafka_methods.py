"""Every public method of aiokafka's producer, consumer and admin client."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete
from calls import Calls

calls = Calls(AIOKafkaProducer, AIOKafkaConsumer, AIOKafkaAdminClient)
topic, other = calls.topic, f"{calls.topic}-other"
base = {"bootstrap_servers": calls.bootstrap_servers}
partition = TopicPartition(topic, 0)


async def topics_are_made(admin):
    named = "AIOKafkaAdminClient."
    await calls.aserved(named + "start", admin.start)
    new = [NewTopic(name, 1, 3) for name in (topic, other)]
    await calls.aserved(named + "create_topics", lambda: _done(admin.create_topics(new)))
    while topic not in await admin.list_topics():
        await asyncio.sleep(0.01)
    await calls.aserved(named + "list_topics", lambda: _done(admin.list_topics()))
    await calls.aserved(named + "describe_topics", lambda: _count(admin.describe_topics([topic])))
    await calls.aserved(named + "describe_cluster", lambda: _done(admin.describe_cluster()))
    partitions = {topic: NewPartitions(2)}
    await calls.aserved(named + "create_partitions", lambda: _done(admin.create_partitions(partitions)))
    changed = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "600000"})
    await calls.aserved(named + "alter_configs", lambda: _done(admin.alter_configs([changed])))
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    await calls.aserved(named + "describe_configs", lambda: _count(admin.describe_configs([resource])))


async def producer_is_used():
    named = "AIOKafkaProducer."
    producer = AIOKafkaProducer(**base, acks="all")
    await calls.aserved(named + "start", producer.start)
    await calls.aserved(named + "send_and_wait", lambda: _offset(producer.send_and_wait(topic, b"v", partition=0)))

    async def sent(batch=None):
        if batch is None:
            future = await producer.send(topic, b"w", partition=0)
        else:
            future = await producer.send_batch(batch, topic, partition=0)
        return (await future).offset

    await calls.aserved(named + "send", sent)
    made = []

    def create_batch():
        made.append(producer.create_batch())
        made[0].append(key=None, value=b"x", timestamp=None)

    await calls.aserved(named + "create_batch", create_batch)
    await calls.aserved(named + "send_batch", lambda: sent(made[0]))
    await calls.aserved(named + "flush", producer.flush)
    await calls.aserved(named + "partitions_for", lambda: _has_0(producer.partitions_for(topic)))
    await calls.aserved(named + "stop", producer.stop)
    await transactions_are_used(named)


async def transactions_are_used(named):
    producer = AIOKafkaProducer(**base, transactional_id=topic)
    await producer.start()
    await calls.aserved(named + "begin_transaction", producer.begin_transaction)
    await calls.aserved(
        named + "send_offsets_to_transaction", lambda: producer.send_offsets_to_transaction({partition: 1}, topic)
    )
    await calls.aserved(named + "commit_transaction", producer.commit_transaction)
    await producer.begin_transaction()
    await calls.aserved(named + "abort_transaction", producer.abort_transaction)

    async def transaction():
        async with producer.transaction():
            pass

    await calls.aserved(named + "transaction", transaction)
    await producer.stop()


async def consumer_is_used():
    named = "AIOKafkaConsumer."
    consumer = AIOKafkaConsumer(**base, auto_offset_reset="earliest")
    await calls.aserved(named + "start", consumer.start)
    await calls.aserved(named + "assign", lambda: consumer.assign([partition]))
    await calls.aserved(named + "assignment", lambda: len(consumer.assignment()))
    await calls.aserved(named + "subscription", lambda: len(consumer.subscription()))
    await calls.aserved(named + "getone", lambda: _value(consumer.getone()))
    await calls.aserved(named + "position", lambda: consumer.position(partition))
    await calls.aserved(named + "seek", lambda: consumer.seek(partition, 1))
    await calls.aserved(named + "getmany", lambda: _values(consumer))
    await calls.aserved(named + "highwater", lambda: consumer.highwater(partition))
    await calls.aserved(named + "last_stable_offset", lambda: consumer.last_stable_offset(partition))
    await calls.aserved(named + "last_poll_timestamp", lambda: consumer.last_poll_timestamp(partition) > 0)
    await calls.aserved(named + "pause", lambda: consumer.pause(partition))
    await calls.aserved(named + "paused", lambda: len(consumer.paused()))
    await calls.aserved(named + "resume", lambda: consumer.resume(partition))
    await calls.aserved(named + "seek_to_beginning", lambda: _done(consumer.seek_to_beginning(partition)))
    await calls.aserved(named + "seek_to_end", lambda: _done(consumer.seek_to_end(partition)))
    await calls.aserved(named + "beginning_offsets", lambda: _of(consumer.beginning_offsets([partition])))
    await calls.aserved(named + "end_offsets", lambda: _of(consumer.end_offsets([partition])))
    await calls.aserved(named + "offsets_for_times", lambda: _done(consumer.offsets_for_times({partition: 0})))
    await calls.aserved(named + "partitions_for_topic", lambda: 0 in (consumer.partitions_for_topic(topic) or [0]))
    await calls.aserved(named + "topics", lambda: _done(consumer.topics()))
    await calls.aserved(named + "stop", consumer.stop)

    grouped = AIOKafkaConsumer(**base, group_id=topic, enable_auto_commit=False)
    await grouped.start()
    grouped.assign([partition])
    await calls.aserved(named + "commit", lambda: grouped.commit({partition: 1}))
    await calls.aserved(named + "committed", lambda: grouped.committed(partition))
    await calls.aserved(named + "seek_to_committed", lambda: _done(grouped.seek_to_committed(partition)))
    await calls.aserved(named + "stop", grouped.stop)
    subscriber = AIOKafkaConsumer(**base, group_id=f"{topic}-2")
    await subscriber.start()

    async def joined():
        subscriber.subscribe([topic])
        while not subscriber.assignment():
            await asyncio.sleep(0.05)
        return sorted(assigned.partition for assigned in subscriber.assignment())

    await calls.aserved(named + "subscribe", joined)
    await calls.aserved(named + "unsubscribe", lambda: subscriber.unsubscribe())
    await calls.aserved(named + "stop", subscriber.stop)


async def groups_are_asked_for(admin):
    named = "AIOKafkaAdminClient."
    records = {partition: RecordsToDelete(before_offset=1)}
    await calls.aserved(named + "delete_records", lambda: _done(admin.delete_records(records)))
    await calls.aserved(named + "find_coordinator", lambda: _known(admin.find_coordinator(topic)))
    await calls.aserved(named + "list_consumer_groups", lambda: _done(admin.list_consumer_groups()))
    await calls.aserved(named + "describe_consumer_groups", lambda: _done(admin.describe_consumer_groups([topic])))
    await calls.aserved(
        named + "list_consumer_group_offsets",
        lambda: _done(admin.list_consumer_group_offsets(topic, partitions=[partition])),
    )
    await calls.aserved(named + "delete_topics", lambda: _done(admin.delete_topics([topic, other])))
    await calls.aserved(named + "close", admin.close)


async def _done(waiting):
    await waiting


async def _count(waiting):
    return len(await waiting)


async def _known(waiting):
    return await waiting in {1, 2, 3}


async def _has_0(waiting):
    return 0 in await waiting


async def _offset(waiting):
    return (await waiting).offset


async def _value(waiting):
    return (await waiting).value.decode()


async def _of(waiting):
    return (await waiting)[partition]


async def _values(consumer):
    found = {}
    while not found:
        found = await consumer.getmany(timeout_ms=1000, max_records=1)
    return [record.value.decode() for rows in found.values() for record in rows]


async def main():
    admin = AIOKafkaAdminClient(**base)
    await topics_are_made(admin)
    await producer_is_used()
    await consumer_is_used()
    await groups_are_asked_for(admin)


asyncio.run(main())
calls.end()

"""Small applications for tests of chaos: one is right, the others commit or forget before they work."""

import asyncio
from collections import Counter

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from broker_sim.chaos import InvariantError

RECORDS = 20
CLIENT = {"request_timeout_ms": 5_000, "retry_backoff_ms": 100, "metadata_max_age_ms": 5_000}
GROUP = {
    "group_id": "orders",
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 4_000,
    "heartbeat_interval_ms": 1_000,
}


def orders_are_worked_off(*, commits_first):
    async def test(chaos):
        servers = chaos.kafka.bootstrap_servers
        done = Counter()

        async def worker():
            consumer = AIOKafkaConsumer("orders", bootstrap_servers=servers, **CLIENT, **GROUP)
            async with consumer:
                async for record in consumer:
                    if commits_first:
                        await consumer.commit()
                    await asyncio.sleep(0.5)
                    done[int(record.value)] += 1
                    if not commits_first:
                        await consumer.commit()

        await chaos.kafka.create_topic("orders", partitions=2, replication_factor=3)
        async with AIOKafkaProducer(bootstrap_servers=servers, **CLIENT) as producer:
            for number in range(RECORDS):
                await producer.send_and_wait("orders", b"%d" % number, partition=number % 2)
        chaos.start(worker, count=2)
        await chaos.faults_over()
        await chaos.eventually(
            lambda: len(done) == RECORDS,
            "no order is lost",
            within_s=60,
            text=lambda: f"never done: {sorted(set(range(RECORDS)) - set(done))}",
        )

    return test


commit_first = orders_are_worked_off(commits_first=True)
commit_last = orders_are_worked_off(commits_first=False)


async def forget(chaos):
    """A worker without Kafka, which takes its work off a list before it does it."""
    left, done = list(range(20)), []

    async def worker():
        while left:
            number = left.pop()
            await asyncio.sleep(0.5)
            done.append(number)

    chaos.start(worker, count=2)
    await chaos.faults_over()
    await chaos.eventually(lambda: len(done) == 20, "nothing is forgotten", within_s=20)


async def hand_over(chaos):
    """One worker puts something down each second, the other takes it, and trusts that it is there."""
    left = []

    async def put():
        for number in range(3):
            await asyncio.sleep(1)
            left.append(number)

    async def take():
        for _ in range(3):
            await asyncio.sleep(1)
            left.pop()

    chaos.start(put)
    chaos.start(take)
    await chaos.faults_over()
    await asyncio.sleep(3)


def heard(controller, monkeypatch):
    """Return the ids of the brokers whose heartbeats the controller hears from now on."""
    ids, beat = [], type(controller).broker_heartbeat

    def hear(self, broker_id, *arguments, **options):
        ids.append(broker_id)
        return beat(self, broker_id, *arguments, **options)

    monkeypatch.setattr(type(controller), "broker_heartbeat", hear)
    return ids


async def forget_a_broker(chaos):
    """A controller that forgets a broker if the third one is heard before the second, and both before the first."""
    with pytest.MonkeyPatch.context() as patch:
        ids = heard(chaos.kafka.nodes.controller, patch)
        await asyncio.sleep(0.6)
    if ids == [3, 2, 1]:
        raise InvariantError("no broker is forgotten")

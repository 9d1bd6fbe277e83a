"""A program of aiokafka: 20 records through a group, then an idle minute."""

import asyncio
import os
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def main():
    servers = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
    async with AIOKafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        for number in range(20):
            await producer.send_and_wait("orders", str(number).encode())
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=servers, group_id="shop", auto_offset_reset="earliest")
    async with consumer:
        for _ in range(20):
            await consumer.getone()
        start = time.monotonic()
        await consumer.getmany(timeout_ms=60_000)
        print("20 records,", round(time.monotonic() - start), "s idle")


asyncio.run(main())

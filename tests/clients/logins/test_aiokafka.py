"""aiokafka logs in with what `client_config` gives."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

TIMEOUT_S = 30


def test_aiokafka(cluster, mechanism):
    config = cluster.client_config("aiokafka", user="billing", mechanism=mechanism)

    async def produce_and_consume():
        async with AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait("t", b"aiokafka")
        async with AIOKafkaConsumer("t", **config, auto_offset_reset="earliest") as consumer:
            return await asyncio.wait_for(consumer.getone(), TIMEOUT_S)

    assert asyncio.run(produce_and_consume()).topic == "t"


def test_aiokafka_over_tls(encrypted):
    async def produce_and_consume():
        config = encrypted.client_config("aiokafka")
        async with AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait("t", bytes(100_000))
        async with AIOKafkaConsumer("t", **config, auto_offset_reset="earliest") as consumer:
            return await asyncio.wait_for(consumer.getone(), TIMEOUT_S)

    assert asyncio.run(produce_and_consume()).value

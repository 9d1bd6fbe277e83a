"""aiokafka: produce and consume on an event loop."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaTimeoutError, RequestTimedOutError

TIMEOUT_S = 60
VALUES = [f"value-{number}".encode() * 20 for number in range(50)]


@pytest.fixture
def produce(simulator):
    """Return a function that sends values and returns their offsets."""

    async def send(topic, values, **config):
        async with AIOKafkaProducer(bootstrap_servers=simulator.bootstrap_servers, **config) as producer:
            futures = [await producer.send(topic, value, partition=0) for value in values]
            return [getattr(await future, "offset", None) for future in futures]

    def run(topic, values=VALUES, **config):
        return asyncio.run(asyncio.wait_for(send(topic, values, **config), TIMEOUT_S))

    return run


@pytest.fixture
def consume(simulator):
    """Return a function that reads the first values of partition 0."""

    async def read(topic, number):
        consumer = AIOKafkaConsumer(bootstrap_servers=simulator.bootstrap_servers, enable_auto_commit=False)
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        async with consumer:
            await consumer.seek_to_beginning(partition)
            return [(await consumer.getone()).value for _ in range(number)]

    return lambda topic, number: asyncio.run(asyncio.wait_for(read(topic, number), TIMEOUT_S))


@pytest.mark.parametrize("acks", [1, "all"])
def test_records_come_back_in_order_with_their_offsets(simulator, produce, consume, acks):
    topic = simulator.create_topic()
    assert produce(topic, acks=acks) == list(range(50))
    assert consume(topic, 50) == VALUES


def test_acks_0_delivers_without_an_answer(simulator, produce, consume):
    topic = simulator.create_topic()
    produce(topic, acks=0)
    assert consume(topic, 50) == VALUES


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_come_back(simulator, produce, consume, compression):
    topic = simulator.create_topic()
    assert produce(topic, compression_type=compression) == list(range(50))
    assert consume(topic, 50) == VALUES


def test_idempotent_producer_writes_every_record_once(simulator, produce, consume):
    topic = simulator.create_topic()
    assert produce(topic, enable_idempotence=True) == list(range(50))
    assert consume(topic, 50) == VALUES


def test_acks_all_times_out_when_the_followers_are_frozen(simulator, frozen_followers):
    topic = simulator.create_topic()

    async def run():
        async with AIOKafkaProducer(
            bootstrap_servers=simulator.bootstrap_servers, acks="all", request_timeout_ms=4000
        ) as producer:
            assert (await producer.send_and_wait(topic, b"before")).offset == 0
            frozen_followers(topic)
            with pytest.raises((RequestTimedOutError, KafkaTimeoutError)):
                await producer.send_and_wait(topic, b"after")

    asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))

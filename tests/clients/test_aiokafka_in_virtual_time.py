"""aiokafka in virtual time: the waits of minutes and hours, with twenty seeds, in seconds."""

import asyncio
import random
import time
from contextlib import closing

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from broker_sim.testing.options import VirtualTimeOptions
from broker_sim.testing.seeded_run import SeededRun

SEEDS = 20
SLOW_ISR = {"replica.lag.time.max.ms": 20_000, "broker.session.timeout.ms": 120_000}
PARTITION = TopicPartition("orders", 0)


def run_seed(test, options, seed):
    with closing(SeededRun(options, seed)) as run:
        cluster = run.open_cluster()
        run.wait(test(cluster))
        run.close_cluster()


async def read(kafka, number):
    """Return the first values of the partition, oldest first."""
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, enable_auto_commit=False)
    consumer.assign([PARTITION])
    async with consumer:
        await consumer.seek_to_beginning(PARTITION)
        return [(await consumer.getone()).value for _ in range(number)]


async def acks_all_with_a_paused_follower(kafka):
    await kafka.create_topic("orders", partitions=1, replication_factor=3)
    async with AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, acks="all", request_timeout_ms=35_000
    ) as producer:
        await producer.send_and_wait("orders", b"first")
        paused = kafka.followers("orders", 0)[0]
        kafka.pause(paused)
        start = time.monotonic()
        await producer.send_and_wait("orders", b"second")
        waited_s = time.monotonic() - start
    # The follower is out after replica.lag.time.max.ms, as seen by a check every half of it.
    assert 20 - 0.5 <= waited_s <= 30 + 0.5
    assert paused not in kafka.isr("orders")
    assert len(kafka.isr("orders")) == 2
    assert kafka.high_watermark("orders") == 2
    assert await read(kafka, 2) == [b"first", b"second"]


@pytest.mark.virtual_time(seeds=SEEDS, order="seeded", latency_ms=(0.1, 5), configs=SLOW_ISR)
async def test_acks_all_is_answered_when_the_paused_follower_leaves_the_isr(kafka):
    await acks_all_with_a_paused_follower(kafka)


@pytest.mark.virtual_time(seeds=SEEDS, order="seeded", latency_ms=(0.1, 5))
async def test_nothing_acknowledged_is_lost_when_the_leader_dies(kafka):
    await kafka.create_topic("orders", 1, 3, {"min.insync.replicas": 2})
    values = [b"%d" % number for number in range(200)]
    acknowledged = []
    dies_after = random.randrange(1, 150)
    has_come_so_far = asyncio.Event()

    async def produce():
        async with AIOKafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers, acks="all", enable_idempotence=True
        ) as producer:
            for value in values:
                await producer.send_and_wait("orders", value, partition=0)
                acknowledged.append(value)
                if len(acknowledged) == dies_after:
                    has_come_so_far.set()

    producing = asyncio.create_task(produce())
    await has_come_so_far.wait()
    await asyncio.sleep(random.uniform(0, 0.02))  # within the produce requests that follow
    leader = kafka.leader("orders")
    kafka.kill(leader)
    assert not producing.done()
    await kafka.start(leader)
    await producing
    assert kafka.leader("orders") != leader
    assert acknowledged == values
    assert await read(kafka, len(values)) == values


@pytest.mark.virtual_time
async def test_an_hour_of_records_one_a_minute_takes_no_real_hour(kafka):
    await kafka.create_topic("orders", 1, 3)
    sent_at = []
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for _ in range(60):
            record = await producer.send_and_wait("orders", b"value", partition=0)
            sent_at.append(record.timestamp)
            await asyncio.sleep(60)
    assert sent_at[-1] - sent_at[0] == pytest.approx(59 * 60_000, rel=0.01)
    assert time.monotonic() >= 3600


async def live_through_an_idle_hour(kafka):
    """Default settings, auto-commit included: it waits without a delay for its deadline to be over."""
    await kafka.create_topic("orders", 1, 1)
    servers = kafka.bootstrap_servers
    async with (
        AIOKafkaConsumer("orders", group_id="group", bootstrap_servers=servers) as consumer,
        AIOKafkaProducer(bootstrap_servers=servers) as producer,
        AIOKafkaProducer(bootstrap_servers=servers, transactional_id="id") as transactional,
    ):
        admin = AIOKafkaAdminClient(bootstrap_servers=servers)
        await admin.start()
        await asyncio.sleep(3_600)
        await producer.send_and_wait("orders", b"value")
        async with transactional.transaction():
            await transactional.send("orders", b"value in a transaction")
        assert [(await consumer.getone()).offset for _ in range(2)] == [0, 1]
        await asyncio.sleep(6)  # auto-commit goes on
        (offset,) = (await admin.list_consumer_group_offsets("group")).values()
        assert offset.offset == 2
        await admin.close()


@pytest.mark.parametrize("order", ["fifo", pytest.param("seeded", marks=pytest.mark.soak(part="clients"))])
def test_clients_with_default_settings_live_through_an_idle_hour(order):
    options = VirtualTimeOptions(order=order, brokers=1, check_invariants=False)
    run_seed(live_through_an_idle_hour, options, seed=0)


def test_same_seed_gives_the_same_trace_callback_by_callback():
    def digest(seed):
        digests = []

        async def test(kafka):
            await acks_all_with_a_paused_follower(kafka)
            digests.append(asyncio.get_running_loop().trace.digest())

        options = VirtualTimeOptions(order="seeded", latency_ms=(0.1, 5), trace_steps=True, configs=SLOW_ISR)
        run_seed(test, options, seed)
        return digests.pop()

    assert digest(3) == digest(3)
    assert digest(3) != digest(4)


@pytest.mark.virtual_time(
    brokers=1, topics=["orders:1:1"], latency_ms=(0.1, 5), security="sasl_ssl", users={"billing": "secret"}
)
async def test_application_logs_in_by_scram_over_tls(kafka):
    config = kafka.client_config("aiokafka", mechanism="SCRAM-SHA-512")
    async with AIOKafkaProducer(**config) as producer:
        await producer.send_and_wait("orders", b"first")
        start = time.monotonic()
        await asyncio.sleep(3600)
        await producer.send_and_wait("orders", b"second")
    assert time.monotonic() - start >= 3600
    assert kafka.high_watermark("orders") == 2

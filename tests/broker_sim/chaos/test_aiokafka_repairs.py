"""Bugs of aiokafka are there without the repairs, gone with them, and back afterwards."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import KafkaConnectionError, RequestTimedOutError
from aiokafka.protocol.metadata import MetadataRequest

from broker_sim import Fault
from broker_sim.chaos import Schedule, run_chaos
from broker_sim.chaos.search import NamedTest

CALM = Schedule(1, duration_ms=1_000)
PLACE = TopicPartition("orders", 0)
LATE_HEARTBEATS = {"broker.heartbeat.interval.ms": 60_000}
"""Brokers are fenced for most of the time."""


async def place_order(chaos):
    await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
    servers = chaos.kafka.bootstrap_servers
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait("orders", b"an order")
    return servers


async def committed_is_known_after_a_move(chaos):
    servers = await place_order(chaos)
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, group_id="shop", enable_auto_commit=False)
    consumer.assign([PLACE])
    async with consumer:
        await consumer.commit({PLACE: 1})
        leader = chaos.kafka.leader("__consumer_offsets", 0)
        other = next(broker for broker in (1, 2, 3) if broker != leader)
        chaos.kafka.nodes.transfer_leadership("__consumer_offsets", 0, other)
        await asyncio.sleep(1)
        assert await consumer.committed(PLACE) == 1


async def committed_is_known_after_an_injected_refusal(chaos):
    servers = await place_order(chaos)
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, group_id="shop", enable_auto_commit=False)
    consumer.assign([PLACE])
    async with consumer:
        await consumer.commit({PLACE: 1})
        with chaos.kafka.inject(Fault(api="OffsetFetch", error="NOT_COORDINATOR", count=1)):
            assert await consumer.committed(PLACE) == 1


async def record_comes_soon_after_a_move(chaos):
    servers = await place_order(chaos)
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    async with consumer:
        await consumer._client.set_topics(["orders"])
        leader = chaos.kafka.leader("orders", 0)
        chaos.kafka.nodes.transfer_leadership("orders", 0, leader % 3 + 1)
        await asyncio.sleep(1)
        consumer.assign([PLACE])
        async with asyncio.timeout(10):
            assert (await consumer.getone()).value == b"an order"


async def consumer_is_stopped_while_it_leaves_its_group(chaos):
    servers = await place_order(chaos)

    async def stop_after(number):
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=servers,
            group_id=f"shop-{number}",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
            max_poll_interval_ms=1_000,
        )
        await consumer.start()
        await consumer.getone()
        await asyncio.sleep(1 + number / 3_000)
        try:
            await consumer.stop()
        finally:
            await consumer._client.close()

    stopped = await asyncio.gather(*map(stop_after, range(10)), return_exceptions=True)
    assert stopped == [None] * 10


async def consumer_is_stopped_when_its_coordinator_is_gone(chaos):
    servers = await place_order(chaos)
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=servers, group_id="shop", auto_offset_reset="earliest")
    await consumer.start()
    await consumer.getone()
    chaos.kafka.kill(chaos.kafka.leader("__consumer_offsets", 0))
    try:
        async with asyncio.timeout(60):
            await consumer.stop()
    finally:
        await consumer._client.close()


async def producer_asks_for_a_leader_with_pauses(chaos):
    servers = chaos.kafka.bootstrap_servers
    chaos.kafka.keep_requests(10_000)
    await chaos.kafka.create_topic("orders", partitions=1, replication_factor=1)
    async with AIOKafkaProducer(bootstrap_servers=servers, retry_backoff_ms=100) as producer:
        await producer.send_and_wait("orders", b"first")
        leader = chaos.kafka.leader("orders", 0)
        chaos.kafka.kill(leader)
        sent = await producer.send("orders", b"second")
        await asyncio.sleep(4)
        await chaos.kafka.start(leader)
        await sent
    asked = [request for request in chaos.kafka.requests() if request.api == "Metadata"]
    assert len(asked) < 60


async def requests_time_out_together(chaos):
    """As on a process that was frozen for longer: the first to end closes the connection."""
    await place_order(chaos)
    client = AIOKafkaClient(bootstrap_servers=chaos.kafka.bootstrap_servers, request_timeout_ms=2_000)
    await client.bootstrap()
    await client.ready(1)

    async def begin_another():
        await asyncio.sleep(2)
        await client.ready(1)

    chaos.kafka.pause(1)
    requests = [client.send(1, MetadataRequest([])) for _ in range(2)]
    between = [requests[0], begin_another(), requests[1]]
    first, _, second = await asyncio.gather(*between, return_exceptions=True)
    chaos.kafka.resume(1)
    await client.close()
    assert isinstance(first, RequestTimedOutError)
    assert isinstance(second, RequestTimedOutError)


async def offset_of_a_transaction_is_awaited(chaos):
    servers = await place_order(chaos)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers, group_id="shop", enable_auto_commit=False, isolation_level="read_committed"
    )
    consumer.assign([PLACE])
    async with consumer, AIOKafkaProducer(bootstrap_servers=servers, transactional_id="t") as sender:
        await consumer.commit({PLACE: 1})
        async with sender.transaction():
            await sender.send_offsets_to_transaction({PLACE: 2}, "shop")
            committed = asyncio.create_task(consumer.committed(PLACE))
            await asyncio.sleep(1)
        assert await committed == 2


async def producer_starts_while_all_brokers_are_fenced(chaos):
    """It fails with an error that an application expects."""
    controller = chaos.kafka.nodes.controller
    await chaos.eventually(lambda: not controller.image.alive_brokers(), "all are fenced", within_s=10)
    await asyncio.sleep(0.5)  # until the brokers know of it
    servers = chaos.kafka.bootstrap_servers
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="t")
    try:
        with pytest.raises(KafkaConnectionError):
            await producer.start()
    finally:
        await producer.stop()


CORRECT = [
    producer_starts_while_all_brokers_are_fenced,
    offset_of_a_transaction_is_awaited,
    requests_time_out_together,
    producer_asks_for_a_leader_with_pauses,
    committed_is_known_after_a_move,
    committed_is_known_after_an_injected_refusal,
    record_comes_soon_after_a_move,
    consumer_is_stopped_while_it_leaves_its_group,
    consumer_is_stopped_when_its_coordinator_is_gone,
]


@pytest.mark.parametrize("test", CORRECT)
def test_correct_application_fails_on_the_bug_and_passes_with_the_repair(test):
    configs = LATE_HEARTBEATS if test is producer_starts_while_all_brokers_are_fenced else None
    assert run_chaos(test, CALM, configs=configs).error is not None
    repaired = run_chaos(test, CALM, configs=configs, repair_aiokafka=True)
    assert repaired.error is None
    assert repaired.repairs


async def fails_while_repaired(chaos):
    assert GroupCoordinator._send_req.__module__ != GroupCoordinator.__module__


def test_methods_are_put_back_after_the_run():
    before = dict(vars(GroupCoordinator)), dict(vars(Fetcher))
    assert run_chaos(fails_while_repaired, CALM, repair_aiokafka=True).error is None
    assert (dict(vars(GroupCoordinator)), dict(vars(Fetcher))) == before
    assert run_chaos(fails_while_repaired, CALM).error is not None


@pytest.mark.chaos(repair_aiokafka=True, workers=3, faults={"crash"}, duration_s=2)
async def fail(_):
    raise AssertionError


def test_marker_of_a_test_counts_for_the_command_and_the_report_tells_of_repairs(monkeypatch):
    monkeypatch.setattr("broker_sim.chaos.search.load_test", lambda _: fail)
    test = NamedTest.of("module:fail", workers=1)
    schedule = test.draw(1)
    assert {action.kind for action in schedule.actions} == {"crash"}
    assert (schedule.workers, schedule.duration_ms) == (1, 2_000)
    failure = test.examine(schedule, shrinks=False)
    assert "\naiokafka is repaired for this run: an OffsetFetch" in str(failure)
    assert "run_chaos(module.fail, schedule, repair_aiokafka=True)" in str(failure)
    assert failure.to_json()["repairs"] == list(failure.small.repairs)


def test_failure_that_a_repair_mends_is_reported_as_bug_of_aiokafka():
    name = f"{__name__}:committed_is_known_after_an_injected_refusal"
    failure = NamedTest.of(name).examine(CALM, shrinks=False)
    assert failure.bugs_of_aiokafka == ("offset_fetch_refused",)
    assert "this is a bug of aiokafka: it passes, and the seed as drawn too, when aiokafka is repaired" in str(failure)
    assert "examples/aiokafka_bugs/offset_fetch_refused.py shows the bug" in str(failure)
    assert "go on with repair_aiokafka=True" in failure.in_pytest("")
    assert not failure.small.repairs


async def fails_by_itself(chaos):
    await place_order(chaos)
    raise AssertionError("the application is wrong")


def test_bug_of_the_application_is_not_reported_as_one_of_aiokafka():
    failure = NamedTest.of(f"{__name__}:fails_by_itself").examine(CALM, shrinks=False)
    assert failure.bugs_of_aiokafka == ()
    assert "bug of aiokafka" not in str(failure)

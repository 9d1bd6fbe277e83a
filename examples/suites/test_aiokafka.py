"""Thirteen tests of `aiokafka_stock`, each in real and in virtual time."""

import asyncio

import pytest
from aiokafka.errors import KafkaTimeoutError, NotEnoughReplicasError, RequestTimedOutError
from aiokafka_stock import Stock, sender

from broker_sim import Fault

TOPICS = ["movements:2:3:min.insync.replicas=2"]


class Suite:
    """The tests for real and virtual time; they use only cluster methods that are not awaited."""

    async def test_first_movement_has_offset_0(self, kafka):
        async with sender(kafka.bootstrap_servers) as send:
            assert await send("apples", 3) == 0

    async def test_movements_of_the_same_goods_are_in_order(self, kafka):
        async with sender(kafka.bootstrap_servers) as send:
            assert [await send("apples", 1) for _ in range(3)] == [0, 1, 2]

    @pytest.mark.parametrize("linger_ms", [0, 20])
    async def test_stock_is_the_sum_of_movements(self, kafka, linger_ms):
        async with (
            sender(kafka.bootstrap_servers, linger_ms=linger_ms) as send,
            Stock(kafka.bootstrap_servers) as stock,
        ):
            await asyncio.gather(send("apples", 3), send("apples", -1), send("pears", 5))
            assert await stock.after(3) == {"apples": 2, "pears": 5}

    async def test_stock_sees_what_came_before_it(self, kafka):
        async with sender(kafka.bootstrap_servers) as send:
            await send("apples", 3)
        async with Stock(kafka.bootstrap_servers) as stock:
            assert await stock.after(1) == {"apples": 3}

    async def test_next_one_of_the_group_goes_on_where_the_last_one_stopped(self, kafka):
        async with sender(kafka.bootstrap_servers) as send:
            for count in (3, 4):
                await send("apples", count)
                async with Stock(kafka.bootstrap_servers) as stock:
                    assert await stock.after(1) == {"apples": count}

    async def test_another_group_sees_everything(self, kafka):
        async with (
            sender(kafka.bootstrap_servers) as send,
            Stock(kafka.bootstrap_servers, "first") as first,
            Stock(kafka.bootstrap_servers, "second") as second,
        ):
            await send("apples", 3)
            assert await first.after(1) == await second.after(1) == {"apples": 3}

    async def test_group_of_two_shares_the_partitions(self, kafka):
        async with (
            Stock(kafka.bootstrap_servers, heartbeat_interval_ms=100) as one,
            Stock(kafka.bootstrap_servers, heartbeat_interval_ms=100) as two,
        ):
            async with asyncio.timeout(40):
                while (len(one.partitions), len(two.partitions)) != (1, 1):
                    await asyncio.sleep(0.05)
            assert one.partitions.isdisjoint(two.partitions)

    async def test_movement_waits_for_a_paused_replica(self, kafka):
        async with sender(kafka.bootstrap_servers) as send:
            await send("apples", 1)
            with kafka.paused(follower_of_apples(kafka)):
                sending = asyncio.create_task(send("apples", 1))
                await asyncio.sleep(0.3)
                assert not sending.done()
            assert await sending == 1

    async def test_movement_outlives_an_error_that_passes(self, kafka):
        fault = kafka.inject(Fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER", count=1))
        async with sender(kafka.bootstrap_servers) as send:
            assert await send("apples", 1) == 0
        assert fault.hits == 1

    async def test_movement_is_refused_below_the_minimum_of_replicas(self, kafka):
        kafka.inject(Fault(api="Produce", error="NOT_ENOUGH_REPLICAS"))
        async with sender(kafka.bootstrap_servers, request_timeout_ms=500) as send:
            with pytest.raises((KafkaTimeoutError, NotEnoughReplicasError, RequestTimedOutError)):
                await send("apples", 1)

    async def test_answer_that_is_lost_makes_no_second_movement(self, kafka):
        kafka.inject(Fault(api="Produce", lose="response", count=1))
        async with (
            sender(kafka.bootstrap_servers, enable_idempotence=True) as send,
            Stock(kafka.bootstrap_servers) as stock,
        ):
            await send("apples", 3)
            await send("apples", 1)
            assert await stock.after(2) == {"apples": 4}

    async def test_slow_broker_is_waited_for(self, kafka):
        kafka.inject(Fault(api="Fetch", delay_ms=200, count=1))
        async with sender(kafka.bootstrap_servers) as send, Stock(kafka.bootstrap_servers) as stock:
            await send("apples", 3)
            assert await stock.after(1) == {"apples": 3}


def follower_of_apples(kafka):
    """Return a follower of the record's partition."""
    (partition,) = (number for number in (0, 1) if kafka.high_watermark("movements", number))
    return kafka.followers("movements", partition)[0]


@pytest.mark.anyio
@pytest.mark.kafka(topics=TOPICS)
class TestInRealTime(Suite):
    pass


@pytest.mark.virtual_time(topics=TOPICS, seeds=3, order="seeded", latency_ms=(0.1, 5))
class TestInVirtualTime(Suite):
    pass

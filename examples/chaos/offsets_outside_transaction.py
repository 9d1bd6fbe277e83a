"""Writes bills in transactions and commits offsets after them: a crash in between bills again."""

import asyncio

import pytest
from aiokafka import TopicPartition
from shop import consumer, each_order_is_billed_once, producer


async def wrong(chaos, me):
    """Commit the offset after the transaction."""
    async with producer(chaos, **transactional(me)) as bills, consumer(chaos) as orders:
        orders.assign([own_partition(me)])
        async for order in orders:
            async with bills.transaction():
                await bills.send_and_wait("bills", order.value, partition=order.partition)
            await asyncio.sleep(2)
            await orders.commit()


async def mended(chaos, me):
    """Commit the offset in the transaction, and continue from stable offsets."""
    place = own_partition(me)
    async with (
        producer(chaos, **transactional(me)) as bills,
        consumer(chaos, isolation_level="read_committed") as orders,
    ):
        orders.assign([place])
        async for order in orders:
            async with bills.transaction():
                await bills.send_and_wait("bills", order.value, partition=order.partition)
                await bills.send_offsets_to_transaction({place: order.offset + 1}, "shop")
            await asyncio.sleep(2)


def own_partition(me):
    """Return the partition of a worker by its number, as in a StatefulSet: worker-1 has the first one."""
    return TopicPartition("orders", int(me.name.removeprefix("worker-")) - 1)


def transactional(me):
    """Return the options of a producer that fences the worker's previous one."""
    return {"transactional_id": me.name, "transaction_timeout_ms": 8_000}


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_wrong(chaos):
    """Fails."""
    await each_order_is_billed_once(chaos, lambda me: wrong(chaos, me))


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await each_order_is_billed_once(chaos, lambda me: mended(chaos, me))

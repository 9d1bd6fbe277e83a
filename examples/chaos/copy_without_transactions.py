"""Writes a bill for each order, then commits: a crash in between bills the order again."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiokafka import TopicPartition
from shop import consumer, each_order_is_billed_once, producer


async def wrong(chaos):
    """Trust an idempotent producer: nothing ties what it sends to the offsets."""
    async with consumer(chaos, "orders") as orders, producer(chaos, enable_idempotence=True) as bills:
        async for order in orders:
            await bills.send_and_wait("bills", order.value, partition=order.partition)
            await asyncio.sleep(2)
            await orders.commit()


async def mended(chaos):
    """Commit bill and offset together, by a producer of each partition.

    Its transactional id fences whoever had the partition before, and ends what that one has begun.
    So only then is what is committed the place to go on from. The first order of a partition comes when
    its offset is stable: after the transaction of a worker that died has timed out.
    """
    producers, next_offset = {}, {}
    async with AsyncExitStack() as open_clients:
        orders = await open_clients.enter_async_context(consumer(chaos, "orders", isolation_level="read_committed"))
        async for order in orders:
            place = TopicPartition(order.topic, order.partition)
            if place not in producers:
                bills = producer(chaos, transactional_id=f"bills-{place.partition}", transaction_timeout_ms=8_000)
                producers[place] = await open_clients.enter_async_context(bills)
                next_offset[place] = await orders.committed(place) or 0
            if order.offset < next_offset[place]:
                continue
            bills = producers[place]
            async with bills.transaction():
                await bills.send_and_wait("bills", order.value, partition=order.partition)
                await asyncio.sleep(2)
                await bills.send_offsets_to_transaction({place: order.offset + 1}, "shop")
            next_offset[place] = order.offset + 1


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_wrong(chaos):
    """Fails."""
    await each_order_is_billed_once(chaos, lambda: wrong(chaos))


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await each_order_is_billed_once(chaos, lambda: mended(chaos))

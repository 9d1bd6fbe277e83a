"""Writes a bill for each order, then commits: a crash in between bills the order again."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiokafka import TopicPartition
from shop import consumer, each_order_is_billed_once, producer


async def wrong(chaos):
    """Trust an idempotent producer, whose records are not tied to the offsets."""
    async with consumer(chaos, "orders") as orders, producer(chaos, enable_idempotence=True) as bills:
        async for order in orders:
            await bills.send_and_wait("bills", order.value, partition=order.partition)
            await asyncio.sleep(2)
            await orders.commit()


async def mended(chaos):
    """Commit bill and offset together, with a producer for each partition.

    Its transactional id fences the previous owner of the partition, and ends that one's transaction. Only then is
    the committed offset the place to continue from. The first order of a partition comes when its offset is stable:
    after the transaction of a dead worker has timed out.
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

"""Commits on a graceful stop, including the order in progress: a deployment loses it."""

import pytest
from aiokafka import TopicPartition
from shop import each_order_is_delivered

FAULTS = {"deploy": 2, "crash": 1, "scale": 1}


async def wrong(orders, deliver):
    """Commit the consumer's position, which is past the order in progress."""
    try:
        async for order in orders:
            await deliver(order)
            await orders.commit()
    finally:
        await orders.commit()


async def mended(orders, deliver):
    """Commit finished orders only."""
    async for order in orders:
        await deliver(order)
        await orders.commit({TopicPartition(order.topic, order.partition): order.offset + 1})


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_wrong(chaos):
    """Fails."""
    await each_order_is_delivered(chaos, wrong)


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await each_order_is_delivered(chaos, mended)

"""Commits an order before it is delivered: a crash in between loses it."""

import pytest
from shop import each_order_is_delivered


async def wrong(orders, deliver):
    """Commit first."""
    async for order in orders:
        await orders.commit()
        await deliver(order)


async def mended(orders, deliver):
    """Deliver first: an order may be delivered twice, and none is lost."""
    async for order in orders:
        await deliver(order)
        await orders.commit()


@pytest.mark.chaos(duration_s=12)
async def test_wrong(chaos):
    """Fails."""
    await each_order_is_delivered(chaos, wrong)


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await each_order_is_delivered(chaos, mended)

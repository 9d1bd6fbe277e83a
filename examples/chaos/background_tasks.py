"""Delivers in background tasks while the consumer auto-commits: a crash loses the orders in progress."""

import asyncio

import pytest
from shop import each_order_is_delivered

IN_BETWEEN_S = 2
"""Pause between two orders, in seconds."""
TAKES_S = 3


async def wrong(orders, deliver):
    """Hand each order to a task; orders are committed once read, delivered or not."""
    async with asyncio.TaskGroup() as tasks:
        async for order in orders:
            tasks.create_task(deliver(order))
            await asyncio.sleep(IN_BETWEEN_S)


async def mended(orders, deliver):
    """Commit a batch when all of its tasks are done."""
    while True:
        batch = await orders.getmany(timeout_ms=1_000, max_records=4)
        async with asyncio.TaskGroup() as tasks:
            for records in batch.values():
                for order in records:
                    tasks.create_task(deliver(order))
        if batch:
            await orders.commit()


@pytest.mark.chaos(duration_s=12)
async def test_wrong(chaos):
    """Fails."""
    options = {"enable_auto_commit": True, "auto_commit_interval_ms": 1_000}
    await each_order_is_delivered(chaos, wrong, TAKES_S, **options)


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await each_order_is_delivered(chaos, mended, TAKES_S)

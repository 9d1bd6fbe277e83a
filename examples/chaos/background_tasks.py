"""Delivers in background tasks while the consumer commits by itself: what is under way is lost in a crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from shop import consumer, each_order_is_delivered

if TYPE_CHECKING:
    from broker_sim.chaos import Chaos


async def wrong(chaos: Chaos) -> None:
    """Hand each order to a task, and let the consumer commit what it has read."""
    delivered: Counter[int] = Counter()

    async def deliver(order: int) -> None:
        await asyncio.sleep(2)
        delivered[order] += 1

    async def worker() -> None:
        async with (
            consumer(chaos, enable_auto_commit=True, auto_commit_interval_ms=1_000) as orders,
            asyncio.TaskGroup() as tasks,
        ):
            async for order in orders:
                tasks.create_task(deliver(int(order.value)))
                await asyncio.sleep(0.4)

    await each_order_is_delivered(chaos, worker, delivered)


async def mended(chaos: Chaos) -> None:
    """Wait for the tasks of a batch before it is committed."""
    delivered: Counter[int] = Counter()

    async def deliver(order: int) -> None:
        await asyncio.sleep(2)
        delivered[order] += 1

    async def worker() -> None:
        async with consumer(chaos, max_poll_records=5) as orders:
            while True:
                batches = await orders.getmany(timeout_ms=1_000)
                async with asyncio.TaskGroup() as tasks:
                    for records in batches.values():
                        for record in records:
                            tasks.create_task(deliver(int(record.value)))
                if batches:
                    await orders.commit()

    await each_order_is_delivered(chaos, worker, delivered)

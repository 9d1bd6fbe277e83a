"""Copies records and commits offsets in two steps: a crash in between copies again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from shop import consumer, each_order_is_copied_once, producer

if TYPE_CHECKING:
    from broker_sim.chaos import Chaos


async def wrong(chaos: Chaos) -> None:
    """An idempotent producer is not enough: nothing ties its records to the offsets."""

    async def worker() -> None:
        async with consumer(chaos) as orders, producer(chaos, enable_idempotence=True) as bills:
            async for order in orders:
                await bills.send_and_wait("bills", order.value, partition=order.partition)
                await asyncio.sleep(0.3)
                await orders.commit()

    await each_order_is_copied_once(chaos, worker)

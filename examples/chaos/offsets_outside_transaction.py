"""Writes bills in a transaction and commits offsets after it: a crash in between bills again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from shop import consumer, each_order_is_copied_once, producer

if TYPE_CHECKING:
    from broker_sim.chaos import Chaos, Worker


async def wrong(chaos: Chaos) -> None:
    """The offsets belong into the transaction: `send_offsets_to_transaction`."""

    async def worker(me: Worker) -> None:
        options = {"transactional_id": me.name, "transaction_timeout_ms": 8_000}
        async with producer(chaos, **options) as bills, consumer(chaos) as orders:
            async for order in orders:
                async with bills.transaction():
                    await bills.send("bills", order.value, partition=order.partition)
                await asyncio.sleep(0.3)
                await orders.commit()

    await each_order_is_copied_once(chaos, worker)

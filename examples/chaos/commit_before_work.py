"""Commits an order before it is delivered: a crash in between loses it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from shop import consumer, each_order_is_delivered

if TYPE_CHECKING:
    from broker_sim.chaos import Chaos


async def _test(chaos: Chaos, *, commits_first: bool) -> None:
    delivered: Counter[int] = Counter()

    async def worker() -> None:
        async with consumer(chaos) as orders:
            async for order in orders:
                if commits_first:
                    await orders.commit()
                await asyncio.sleep(0.4)
                delivered[int(order.value)] += 1
                if not commits_first:
                    await orders.commit()

    await each_order_is_delivered(chaos, worker, delivered)


async def wrong(chaos: Chaos) -> None:
    """Commit first."""
    await _test(chaos, commits_first=True)


async def mended(chaos: Chaos) -> None:
    """Deliver first: an order may be delivered twice, and none is lost."""
    await _test(chaos, commits_first=False)

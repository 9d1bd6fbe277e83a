"""Sends orders without idempotence: when an answer is lost, the client sends again, and the order is there twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from shop import make_topics, producer

if TYPE_CHECKING:
    from broker_sim.chaos import Chaos

ORDERS = 40
FAULTS = ("lose", "cut", "kill", "transfer")
"""A crash of the shop itself is another matter: it does not know what it has sent."""


async def _test(chaos: Chaos, *, is_idempotent: bool) -> None:
    async def shop() -> None:
        options = {"enable_idempotence": is_idempotent, "request_timeout_ms": 60_000}
        async with producer(chaos, **options) as orders:
            for order in range(ORDERS):
                await orders.send_and_wait("orders", b"%d" % order, partition=0)
                await asyncio.sleep(0.4)

    await make_topics(chaos, "orders")
    chaos.start(shop)
    await chaos.faults_over()
    await chaos.eventually(
        lambda: len({record.value for record in chaos.kafka.records("orders")}) == ORDERS,
        "each order is sent",
        within_s=90,
    )
    records = [int(record.value) for record in chaos.kafka.records("orders")]
    twice = sorted({order for order in records if records.count(order) > 1})
    if twice:
        raise AssertionError(f"sent twice: {twice}")


async def wrong(chaos: Chaos) -> None:
    """Without idempotence."""
    await _test(chaos, is_idempotent=False)


async def mended(chaos: Chaos) -> None:
    """With it, the broker knows what it has already."""
    await _test(chaos, is_idempotent=True)

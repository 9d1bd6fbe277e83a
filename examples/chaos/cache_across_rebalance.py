"""Counts orders in memory: after its partition was another worker's for a while, a worker counts on from before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from shop import CLIENT, GROUP, ORDERS, PARTITIONS, SETTLE_S, place_orders

if TYPE_CHECKING:
    from broker_sim.chaos import Chaos

NOTHING = (-1, 0)
"""No offset yet, and no order counted."""


async def _test(chaos: Chaos, *, forgets: bool) -> None:
    table: dict[
        int, tuple[int, int]
    ] = {}  # a database: the last offset of each partition, and the count

    async def worker() -> None:
        counts: dict[int, tuple[int, int]] = {}

        class Forget(ConsumerRebalanceListener):  # type: ignore[misc] - aiokafka has no types
            async def on_partitions_revoked(self, revoked: Any) -> None:
                if forgets:
                    counts.clear()

            async def on_partitions_assigned(self, assigned: Any) -> None:
                if forgets:
                    counts.clear()

        servers = chaos.kafka.bootstrap_servers
        orders = AIOKafkaConsumer(bootstrap_servers=servers, **CLIENT, **GROUP)
        orders.subscribe(["orders"], listener=Forget())
        async with orders:
            async for order in orders:
                place = order.partition
                if place not in counts:
                    counts[place] = table.get(place, NOTHING)
                offset, count = counts[place]
                if order.offset > offset:
                    counts[place] = order.offset, count + 1
                await asyncio.sleep(0.4)
                if counts.get(place, NOTHING)[0] > table.get(place, NOTHING)[0]:
                    table[place] = counts[place]
                await orders.commit()

    await place_orders(chaos)
    chaos.start(worker, count=2)
    await chaos.faults_over()
    last = ORDERS // PARTITIONS - 1
    await chaos.eventually(
        lambda: sorted(offset for offset, _ in table.values()) == [last] * PARTITIONS,
        "each order is read",
        within_s=SETTLE_S,
    )
    counted = sum(count for _, count in table.values())
    if counted != ORDERS:
        raise AssertionError(f"counted {counted} of {ORDERS} orders")


async def wrong(chaos: Chaos) -> None:
    """Keep the counts whatever partitions are assigned."""
    await _test(chaos, forgets=False)


async def mended(chaos: Chaos) -> None:
    """Forget them with each rebalance, and read the table again."""
    await _test(chaos, forgets=True)

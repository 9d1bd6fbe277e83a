"""What the applications with FastStream share: workers that cook the orders of a topic."""

import asyncio
from collections import Counter

from faststream.kafka import KafkaBroker
from shop import ORDERS, WITHIN_S, place_orders

CLIENT = {"request_timeout_ms": 5_000, "metadata_max_age_ms": 5_000, "graceful_timeout": 5.0}
GROUP = {
    "group_id": "kitchen",
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 4_000,
    "heartbeat_interval_ms": 1_000,
}


async def each_order_is_cooked(chaos, **options):
    """Two workers cook orders under faults; in the end each must be cooked. `options` are the subscriber's."""
    cooked = Counter()

    async def worker(me):
        broker = KafkaBroker(chaos.kafka.bootstrap_servers.split(","), **CLIENT)

        @broker.subscriber("orders", **GROUP, **options)
        async def cook(order: int) -> None:
            await asyncio.sleep(1)
            me.depend("the stove")
            cooked[order] += 1

        async with broker:
            await broker.start()
            await asyncio.Event().wait()

    await place_orders(chaos)
    chaos.start(worker, count=2)
    await chaos.faults_over()
    await chaos.eventually(
        lambda: len(cooked) == ORDERS,
        "each order is cooked",
        within_s=WITHIN_S,
        text=lambda: f"never cooked: {sorted(set(range(ORDERS)) - set(cooked))}",
    )

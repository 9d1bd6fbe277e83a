"""Sends what fails to a retry topic: later orders of the same customer overtake it."""

import asyncio

import pytest
from shop import consumer, make_topic, place_orders, producer

ORDERS = 20
FAULTS = {"fail": 2, "crash": 1}


async def wrong(me, order, deliver, retries):
    """Let the order wait in another topic for a second."""
    try:
        await deliver(me, order)
    except ConnectionError:
        await asyncio.sleep(1)
        await retries.send_and_wait("retries", order.value, order.key, partition=order.partition)


async def mended(me, order, deliver, _):
    """Wait with the whole partition."""
    while True:
        try:
            return await deliver(me, order)
        except ConnectionError:
            await asyncio.sleep(1)


async def order_is_kept(chaos, handle):
    """Two workers deliver orders; each customer must get the first ones first."""
    history = chaos.history

    async def deliver(me, order):
        await asyncio.sleep(0.4)
        me.depend("the courier")
        history.handled(order)

    async def worker(me):
        async with consumer(chaos, "orders", "retries") as orders, producer(chaos) as retries:
            async for order in orders:
                await handle(me, order, deliver, retries)
                await orders.commit()

    await make_topic(chaos, "retries")
    await place_orders(chaos, ORDERS)
    chaos.start(worker, count=2)
    await chaos.faults_over()
    await history.nothing_lost("orders")
    history.order_kept("orders")


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_wrong(chaos):
    """Fails."""
    await order_is_kept(chaos, wrong)


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await order_is_kept(chaos, mended)

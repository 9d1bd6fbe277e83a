"""Sends orders that cannot be billed to a dead letter topic without awaiting it: a crash loses them."""

import asyncio

import pytest
from shop import WITHIN_S, consumer, make_topic, place_orders, producer

ORDERS = 24
FAULTS = {"crash", "freeze", "kill"}


def can_be_billed(order):
    """Whether an order is valid."""
    return int(order.value) % 3


async def wrong(letters, order):
    """Let the client send the letter when a batch is full."""
    await letters.send("dead-letters", order.value, order.key)


async def mended(letters, order):
    """Wait until the letter is acknowledged."""
    await letters.send_and_wait("dead-letters", order.value, order.key)


async def nothing_is_lost(chaos, put_aside):
    """Two workers bill orders or put them aside; in the end each order must be billed or be a dead letter."""

    async def worker():
        async with consumer(chaos, "orders") as orders, producer(chaos, linger_ms=2_000) as letters:
            async for order in orders:
                await asyncio.sleep(0.5)
                if not can_be_billed(order):
                    await put_aside(letters, order)
                await orders.commit()

    await make_topic(chaos, "dead-letters")
    await place_orders(chaos, ORDERS)
    chaos.start(worker, count=2)
    await chaos.faults_over()

    def missing():
        letters = {record.value for record in chaos.kafka.records("dead-letters")}
        return sorted(
            int(order.value)
            for order in chaos.kafka.records("orders")
            if not can_be_billed(order) and order.value not in letters
        )

    await chaos.eventually(
        lambda: not missing(), "each order is put aside", within_s=WITHIN_S, text=lambda: f"lost: {missing()}"
    )


@pytest.mark.chaos(duration_s=12, faults=FAULTS)
async def test_wrong(chaos):
    """Fails."""
    await nothing_is_lost(chaos, wrong)


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await nothing_is_lost(chaos, mended)

"""Drops late orders by one clock for all partitions: orders of a partition that changes hands are dropped."""

import asyncio

import pytest
from aiokafka import ConsumerRebalanceListener
from shop import WITHIN_S, consumer, make_topic, producer

ORDERS = 40
LATE = 4
"""An order is late if that many newer ones have come on its clock."""
FAULTS = {"crash", "freeze", "cut", "slow_start"}


class Clocks(ConsumerRebalanceListener):
    """The newest order so far, of all partitions or of each."""

    def __init__(self, of):
        self._of = of
        self._newest = {}

    def is_late(self, order):
        """Whether much newer orders have come already."""
        clock, number = self._of(order), int(order.value)
        self._newest[clock] = max(self._newest.get(clock, number), number)
        return number < self._newest[clock] - LATE

    def on_partitions_revoked(self, _):
        """Do nothing; other workers count from now on."""

    def on_partitions_assigned(self, _):
        """Forget the newest orders: those counted but not committed come again."""
        self._newest = {clock: newest for clock, newest in self._newest.items() if clock is None}


def wrong(_):
    """Use one clock for all partitions."""


def mended(order):
    """Use a clock for each partition."""
    return order.partition


async def all_are_in_the_sum(chaos, of):
    """Two workers add up orders while they are placed; no order may be missing."""
    counted = set()

    async def worker():
        clocks = Clocks(of)
        orders = consumer(chaos)
        orders.subscribe(["orders"], listener=clocks)
        async with orders:
            async for order in orders:
                if not clocks.is_late(order):
                    await asyncio.sleep(0.1)
                    counted.add(int(order.value))
                await orders.commit()

    async def shop():
        async with producer(chaos) as orders:
            for number in range(ORDERS):
                await orders.send_and_wait("orders", b"%d" % number, partition=number % 2)
                await asyncio.sleep(0.3)

    await make_topic(chaos, "orders")
    chaos.start(worker, count=2)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(shop())
        tasks.create_task(chaos.faults_over())
    await chaos.eventually(
        lambda: len(counted) == ORDERS,
        "all orders are in the sum",
        within_s=WITHIN_S,
        text=lambda: f"not in it: {sorted(set(range(ORDERS)) - counted)}",
    )


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_wrong(chaos):
    """Fails."""
    await all_are_in_the_sum(chaos, wrong)


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await all_are_in_the_sum(chaos, mended)

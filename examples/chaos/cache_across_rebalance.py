"""Keeps sums in memory while another worker owns the partition: when it comes back, they are stale."""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import ConsumerRebalanceListener
from aiokafka.errors import CommitFailedError
from shop import WITHIN_S, consumer, place_orders

ORDERS = 24
FAULTS = {"crash", "freeze", "cut"}  # faults that make partitions change hands
EXPECTED = {b"customer-%d" % number: sum(range(number, ORDERS, 4)) for number in range(4)}


class Table:
    """A database: for each customer the sum of all orders, and the offset of the last one included."""

    def __init__(self):
        self.rows = {}

    async def read(self, customer):
        """Return the row of a customer: offset and sum."""
        await asyncio.sleep(0.4)
        return self.rows.get(customer, (-1, 0))

    async def write(self, customer, offset, total):
        """Replace the row, unless it includes a later order."""
        await asyncio.sleep(1)
        if offset > self.rows.get(customer, (-1, 0))[0]:
            self.rows[customer] = offset, total


class Cache(ConsumerRebalanceListener):
    """The rows that a worker has read."""

    def __init__(self, *, is_emptied):
        self.rows = {}
        self._is_emptied = is_emptied

    def on_partitions_revoked(self, _):
        """Do nothing; other workers may write from now on."""

    def on_partitions_assigned(self, _):
        """Start with an empty cache; an order in progress keeps the old one."""
        if self._is_emptied:
            self.rows = {}


async def work(orders, table, cache):
    """Add each order to the sum of its customer."""
    async for order in orders:
        rows, customer = cache.rows, order.key
        if customer not in rows:
            rows[customer] = await table.read(customer)
        offset, total = rows[customer]
        if order.offset > offset:  # an order may come twice
            rows[customer] = order.offset, total + int(order.value)
            await table.write(customer, *rows[customer])
        with suppress(CommitFailedError):  # another worker may own the partition by now
            await orders.commit()


async def sums_are_right(chaos, *, is_emptied):
    """Start a worker and later a second one, under faults; in the end all sums must be right."""
    table = Table()

    async def worker():
        cache = Cache(is_emptied=is_emptied)
        orders = consumer(chaos, max_partition_fetch_bytes=200)  # some orders of each in turn
        orders.subscribe(["orders"], listener=cache)
        async with orders:
            await work(orders, table, cache)

    await place_orders(chaos, ORDERS)
    chaos.start(worker)
    await asyncio.sleep(6)
    chaos.start(worker)
    await chaos.faults_over()
    await chaos.eventually(
        lambda: {customer: total for customer, (_, total) in table.rows.items()} == EXPECTED,
        "the sums are right",
        within_s=WITHIN_S,
        text=lambda: f"{table.rows}",
    )


@pytest.mark.chaos(duration_s=12, faults=FAULTS)
async def test_wrong(chaos):
    """Fails."""
    await sums_are_right(chaos, is_emptied=False)


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await sums_are_right(chaos, is_emptied=True)

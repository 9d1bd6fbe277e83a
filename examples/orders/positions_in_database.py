"""Two workers keep their positions in a database; the new owner of a partition continues where the last one ended.

The wrong version tidies up: it removes the rows of partitions that it has lost. Both workers get their new assignments
at the same moment, and in the usual order of tasks the new owner has read the row by then. Only another order shows
the bug.
"""

import asyncio
from collections import Counter

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener

ORDERS = 12
CLIENT = {"request_timeout_ms": 5_000}
GROUP = {"group_id": "shop", "enable_auto_commit": False, "auto_offset_reset": "earliest"}


class Positions(ConsumerRebalanceListener):
    """A worker's position in each of its partitions."""

    def __init__(self, orders, database, *, tidies_up):
        self.reached = {}
        self._orders = orders
        self._database = database
        self._tidies_up = tidies_up

    def on_partitions_revoked(self, _):
        """Store the positions for the next owners."""
        self._database.update(self.reached)

    def on_partitions_assigned(self, partitions):
        """Continue where the last owner ended."""
        lost = set(self.reached) - set(partitions)
        self.reached = {}
        for partition in partitions:
            self._orders.seek(partition, self._database.get(partition, 0))
        for partition in lost if self._tidies_up else ():
            del self._database[partition]


async def each_order_is_delivered_once(chaos, *, tidies_up):
    """Start a worker; once it has delivered all orders start a second one, then place more orders."""
    servers = chaos.kafka.bootstrap_servers
    database, delivered = {}, Counter()

    async def work(me):
        options = {"client_id": me.name, **CLIENT, **GROUP}
        orders = AIOKafkaConsumer(bootstrap_servers=servers, **options)
        positions = Positions(orders, database, tidies_up=tidies_up)
        orders.subscribe(["orders"], listener=positions)
        async with orders:
            while True:
                for partition, batch in (await orders.getmany(timeout_ms=10_000)).items():
                    delivered.update(int(order.value) for order in batch)
                    positions.reached[partition] = batch[-1].offset + 1

    await chaos.kafka.create_topic("orders", partitions=2, replication_factor=1)
    async with AIOKafkaProducer(bootstrap_servers=servers, **CLIENT) as sender:
        for order in range(ORDERS):
            await sender.send("orders", b"%d" % order, partition=order % 2)
    for _ in range(2):
        chaos.start(work)
        await asyncio.sleep(5)
    await chaos.faults_over()
    assert delivered == Counter(range(ORDERS))


@pytest.mark.chaos(exhaustive=True)
async def test_wrong(chaos):
    """Fails."""
    await each_order_is_delivered_once(chaos, tidies_up=True)


@pytest.mark.chaos(exhaustive=True)
async def test_mended(chaos):
    """Passes."""
    await each_order_is_delivered_once(chaos, tidies_up=False)

"""Shared by the applications: a topic of orders, clients with short timeouts, and invariants."""

import asyncio
from collections import Counter

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

ORDERS = 10
PARTITIONS = 2
WITHIN_S = 30  # after the faults
CLIENT = {"request_timeout_ms": 5_000, "retry_backoff_ms": 100, "metadata_max_age_ms": 5_000}
GROUP = {
    "group_id": "shop",
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 4_000,
    "heartbeat_interval_ms": 1_000,
    "fetch_max_wait_ms": 2_000,
}


def consumer(chaos, *topics, **options):
    """Return a consumer that is a member of the group."""
    servers = chaos.kafka.bootstrap_servers
    return AIOKafkaConsumer(*topics, bootstrap_servers=servers, **{**CLIENT, **GROUP, **options})


def producer(chaos, **options):
    """Return a producer that waits for all replicas."""
    servers = chaos.kafka.bootstrap_servers
    return AIOKafkaProducer(bootstrap_servers=servers, **{**CLIENT, "acks": "all", **options})


async def make_topic(chaos, name):
    """Create a topic with three replicas and min.insync.replicas=2."""
    configs = {"min.insync.replicas": "2"}
    await chaos.kafka.create_topic(name, partitions=PARTITIONS, replication_factor=3, configs=configs)


async def place_orders(chaos, count=ORDERS):
    """Fill the topic of orders: an order's value is its number, and four customers take turns."""
    await make_topic(chaos, "orders")
    async with producer(chaos) as sender:
        for order in range(count):
            value, customer = b"%d" % order, b"customer-%d" % (order % 4)
            sent = await sender.send("orders", value, customer, partition=order % PARTITIONS)
            if order % 4 == 3:
                await sent  # in small batches, so that a fetch returns only some


async def each_order_is_delivered(chaos, work, takes_s=2, **options):
    """Run `work(orders, deliver)` in two workers under faults; in the end each order must be delivered."""
    delivered = Counter()

    async def deliver(order):
        await asyncio.sleep(takes_s)
        delivered[int(order.value)] += 1

    async def worker():
        async with consumer(chaos, "orders", **options) as orders:
            await work(orders, deliver)

    await place_orders(chaos)
    chaos.start(worker, count=2)
    await chaos.faults_over()
    await chaos.eventually(
        lambda: len(delivered) == ORDERS,
        "each order is delivered",
        within_s=WITHIN_S,
        text=lambda: f"never delivered: {sorted(set(range(ORDERS)) - set(delivered))}",
    )


async def each_order_is_billed_once(chaos, work):
    """Run `work` in two workers under faults; in the end each order must have one bill."""
    await make_topic(chaos, "bills")
    await place_orders(chaos)
    chaos.start(work, count=2)
    await chaos.faults_over()

    def bills():
        return Counter(int(record.value) for record in chaos.kafka.records("bills"))

    await chaos.eventually(
        lambda: len(bills()) == ORDERS,
        "each order is billed",
        within_s=WITHIN_S,
        text=lambda: f"no bill for {sorted(set(range(ORDERS)) - set(bills()))}",
    )
    twice = sorted(order for order, count in bills().items() if count > 1)
    assert not twice, f"billed twice: {twice}"

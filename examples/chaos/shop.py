"""What the applications share: a topic of orders, clients with short timeouts, and what must hold."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker_sim.chaos import Chaos

ORDERS = 80
PARTITIONS = 2
CLIENT: dict[str, Any] = {
    "request_timeout_ms": 5_000,
    "retry_backoff_ms": 100,
    "metadata_max_age_ms": 5_000,
}
GROUP: dict[str, Any] = {
    "group_id": "shop",
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 4_000,
    "heartbeat_interval_ms": 1_000,
}
SETTLE_S = 90


def consumer(chaos: Chaos, **options: Any) -> AIOKafkaConsumer:
    """Return a consumer of the orders, a member of the group."""
    servers = chaos.kafka.bootstrap_servers
    return AIOKafkaConsumer("orders", bootstrap_servers=servers, **{**CLIENT, **GROUP, **options})


def producer(chaos: Chaos, **options: Any) -> AIOKafkaProducer:
    """Return a producer that waits for all replicas."""
    servers = chaos.kafka.bootstrap_servers
    return AIOKafkaProducer(bootstrap_servers=servers, **{**CLIENT, "acks": "all", **options})


async def make_topics(chaos: Chaos, *names: str) -> None:
    """Create topics of three replicas, of which two must have a record."""
    for name in names:
        await chaos.kafka.create_topic(
            name,
            partitions=PARTITIONS,
            replication_factor=3,
            configs={"min.insync.replicas": "2"},
        )


async def place_orders(chaos: Chaos) -> None:
    """Fill the topic of orders."""
    await make_topics(chaos, "orders")
    async with producer(chaos) as sender:
        for order in range(ORDERS):
            partition = order % PARTITIONS
            await sender.send_and_wait("orders", b"%d" % order, partition=partition)


async def each_order_is_delivered(
    chaos: Chaos, worker: Callable[..., Coroutine[Any, Any, None]], delivered: Counter[int]
) -> None:
    """Run two workers under faults; in the end each order must have been delivered."""
    await place_orders(chaos)
    chaos.start(worker, count=2)
    await chaos.faults_over()
    await chaos.eventually(
        lambda: len(delivered) == ORDERS,
        "each order is delivered",
        within_s=SETTLE_S,
        text=lambda: f"never delivered: {sorted(set(range(ORDERS)) - set(delivered))}",
    )


async def each_order_is_copied_once(
    chaos: Chaos, worker: Callable[..., Coroutine[Any, Any, None]]
) -> None:
    """Run two workers under faults; in the end each order must be in the topic `bills` once."""
    await make_topics(chaos, "bills")
    await place_orders(chaos)
    chaos.start(worker, count=2)
    await chaos.faults_over()

    def bills() -> Counter[int]:
        return Counter(int(record.value) for record in chaos.kafka.records("bills"))

    await chaos.eventually(
        lambda: len(bills()) == ORDERS,
        "each order is billed",
        within_s=SETTLE_S,
        text=lambda: f"no bill for {sorted(set(range(ORDERS)) - set(bills()))}",
    )
    twice = sorted(order for order, count in bills().items() if count > 1)
    if twice:
        raise AssertionError(f"billed twice: {twice}")

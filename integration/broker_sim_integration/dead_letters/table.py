"""The cases, each a function that returns its observations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.records import Record
from broker_sim_integration.case_connection import eventually
from broker_sim_integration.dead_letters.shop import ACCEPT, BROKER, GROUP, REJECT, RELEASE, TOPIC, Shop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

RECORDING: Final = Path(__file__).with_name("recorded.jsonl")
"""The observations on a real broker."""
CONFIGS: Final = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "50",
    "group.share.min.session.timeout.ms": "100",
    "num.partitions": "2",
}
"""Configurations of the broker."""
NAME: Final = "errors.deadletterqueue.topic.name"
COPY: Final = "errors.deadletterqueue.copy.record.enable"
ENABLE: Final = "errors.deadletterqueue.group.enable"
CREATES: Final = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
ENABLED: Final = {ENABLE: "true"}
LIMITED: Final = {"share.delivery.count.limit": "2", "share.record.lock.duration.ms": "1000"}
ORDERS: Final = [Record(b"one", b"1", headers=(("h", b"x"),)), Record(b"two", b"2"), Record(None, b"3"), Record(b"4")]


def _group(topic: str, copies: bool = False) -> dict[str, str]:
    return {NAME: topic, COPY: str(copies).lower()}


async def configurations(shop: Shop) -> list[Any]:
    """Describe, check and change the configurations."""
    group, name = shop.group, shop.name("dlq.topic")
    seen: list[Any] = [
        await shop.alter(GROUP, group, {NAME: "__letters"}),
        await shop.alter(GROUP, group, {NAME: "a name that no topic has"}),
        await shop.alter(GROUP, group, {COPY: "maybe"}),
        await shop.describe(GROUP, f"another {group}", NAME, COPY),
        await shop.alter(GROUP, group, {NAME: "dlq.a", COPY: "true"}),
        await shop.create(name, 1, {ENABLE: "maybe"}),
        await shop.create(name, 1, ENABLED),
        await shop.describe(BROKER, "1", CREATES, PREFIX),
        await shop.alter(BROKER, "1", {CREATES: "true"}),
        await shop.alter(BROKER, "", {CREATES: "maybe"}),
        await shop.alter(BROKER, "", {PREFIX: "x."}),
    ]
    seen.append(await eventually(lambda: shop.describe(GROUP, group, NAME, COPY), lambda rows: rows[0][2] == 8, 10))
    seen.append(
        await eventually(lambda: shop.describe(TOPIC, name, ENABLE), lambda rows: bool(rows and rows[0][2] == 1), 10)
    )
    seen.append(
        await eventually(
            lambda: shop.describe(BROKER, "1", CREATES, PREFIX), lambda rows: any("x." in r for r in rows), 10
        )
    )
    seen.append(await shop.alter(BROKER, "1", {CREATES: None}))
    seen.append(await shop.alter(BROKER, "", {PREFIX: None}))
    return seen


async def _reject(
    shop: Shop,
    queue: str,
    count: int,
    *types: int,
    copies: bool = False,
    partitions: int = 1,
    codec: CompressionCodec = CompressionCodec.NONE,
) -> list[Any]:
    """Produce ORDERS to partition 1 of 2, acknowledge them with these types, and return the results."""
    source = await shop.make("orders", 2)
    await shop.configure(_group(queue, copies))
    await shop.produce(source, 1, ORDERS, codec)
    member = await shop.member(source)
    return [
        await member.fetch(source, 1, len(ORDERS)),
        await member.acknowledge(source, 1, 0, *types),
        await shop.letters(queue, count, partitions),
        await shop.settled(source, len(ORDERS), 1),
    ]


async def headers_only(shop: Shop) -> list[Any]:
    """Reject two records of four: their letters are in partition 1 of 3."""
    queue = await shop.make("dlq.letters", 3, ENABLED)
    return await _reject(shop, queue.name, 2, REJECT, ACCEPT, REJECT, ACCEPT, partitions=3)


async def copies(shop: Shop) -> list[Any]:
    """Reject and copy all: the letters of partition 1 are in the only one."""
    queue = await shop.make("dlq.letters", 1, ENABLED)
    return await _reject(shop, queue.name, 4, REJECT, REJECT, REJECT, REJECT, copies=True)


async def copies_of_packed_records(shop: Shop) -> list[Any]:
    """Copy records of a compressed batch."""
    queue = await shop.make("dlq.letters", 1, ENABLED)
    return await _reject(shop, queue.name, 2, ACCEPT, REJECT, REJECT, ACCEPT, copies=True, codec=CompressionCodec.GZIP)


async def small_batches(shop: Shop) -> list[Any]:
    """Write to a topic that allows one letter in a batch."""
    queue = await shop.make("dlq.letters", 1, {"max.message.bytes": "350", **ENABLED})
    return await _reject(shop, queue.name, 4, REJECT, REJECT, REJECT, REJECT, copies=True)


async def too_small_batches(shop: Shop) -> list[Any]:
    """Write to a topic whose maximum batch is too small for a letter."""
    queue = await shop.make("dlq.letters", 1, {"max.message.bytes": "100", **ENABLED})
    return await _reject(shop, queue.name, 0, REJECT, REJECT, REJECT, REJECT)


async def compacted(shop: Shop) -> list[Any]:
    """Write to a compacted topic, which rejects letters without keys."""
    queue = await shop.make("dlq.letters", 1, {"cleanup.policy": "compact", **ENABLED})
    return await _reject(shop, queue.name, 0, REJECT, REJECT, REJECT, REJECT)


async def too_few_replicas(shop: Shop) -> list[Any]:
    """Write to a topic with fewer replicas than min.insync.replicas, which is then the number of replicas."""
    queue = await shop.make("dlq.letters", 1, {"min.insync.replicas": "2", **ENABLED})
    return await _reject(shop, queue.name, 4, REJECT, REJECT, REJECT, REJECT)


async def log_append_time(shop: Shop) -> list[Any]:
    """Use a topic with LogAppendTime."""
    queue = await shop.make(
        "dlq.letters", 1, {"message.timestamp.type": "LogAppendTime", "compression.type": "lz4", **ENABLED}
    )
    return await _reject(shop, queue.name, 4, REJECT, REJECT, REJECT, REJECT)


async def not_enabled(shop: Shop) -> list[Any]:
    """Name a topic that is not enabled for letters."""
    queue = await shop.make("dlq.letters", 1)
    return await _reject(shop, queue.name, 0, REJECT, REJECT, REJECT, REJECT)


async def another_prefix(shop: Shop) -> list[Any]:
    """Name a topic without the prefix."""
    queue = await shop.make("letters", 1, ENABLED)
    return await _reject(shop, queue.name, 0, REJECT, REJECT, REJECT, REJECT)


async def no_topic(shop: Shop) -> list[Any]:
    """Name a topic that does not exist, and that brokers do not create."""
    return await _reject(shop, shop.name("dlq.letters"), 0, REJECT, REJECT, REJECT, REJECT)


async def created_topic(shop: Shop) -> list[Any]:
    """Name a topic that brokers create, with the default number of partitions."""
    queue = shop.name("dlq.letters")
    await shop.alter(BROKER, "", {CREATES: "true"})
    await eventually(lambda: shop.describe(BROKER, "1", CREATES), lambda rows: bool(rows and rows[0][1] == "true"), 10)
    seen = await _reject(shop, queue, 4, REJECT, REJECT, REJECT, REJECT, partitions=2)
    rows = await shop.describe(TOPIC, queue)
    seen.append(sorted(row for row in rows if row[2] == 1))
    await shop.alter(BROKER, "", {CREATES: None})
    await eventually(lambda: shop.describe(BROKER, "1", CREATES), lambda rows: bool(rows and rows[0][1] == "false"), 10)
    return seen


async def released_too_often(shop: Shop) -> list[Any]:
    """Release a record once more than share.delivery.count.limit allows: its letter has the other cause."""
    queue = await shop.make("dlq.letters", 1, ENABLED)
    source = await shop.make("orders")
    await shop.configure({**_group(queue.name), **LIMITED})
    await shop.produce(source, 0, ORDERS[:1])
    member = await shop.member(source)
    seen: list[Any] = []
    for _ in range(2):
        seen += [await member.fetch(source, 0, 1), await member.acknowledge(source, 0, 0, RELEASE)]
    return [*seen, await shop.letters(queue.name, 1), await shop.settled(source, 1)]


async def locks_timed_out(shop: Shop) -> list[Any]:
    """Make a lock time out once more than share.delivery.count.limit allows."""
    queue = await shop.make("dlq.letters", 1, ENABLED)
    source = await shop.make("orders")
    await shop.configure({**_group(queue.name, copies=True), **LIMITED})
    await shop.produce(source, 0, ORDERS)
    member = await shop.member(source)
    seen: list[Any] = [await member.fetch(source, 0, 4), sorted(await member.fetch(source, 0, 1))[:1]]
    return [*seen, (await shop.letters(queue.name, 1))[:2]]


async def session_ended(shop: Shop) -> list[Any]:
    """End the member's session, twice."""
    queue = await shop.make("dlq.letters", 1, ENABLED)
    source = await shop.make("orders")
    await shop.configure({**_group(queue.name), "share.delivery.count.limit": "2"})
    await shop.produce(source, 0, ORDERS[:1])
    seen: list[Any] = []
    for _ in range(2):
        member = await shop.member(source)
        seen.append(await member.fetch(source, 0, 1))
        member.connection.close()
    return [*seen, await shop.letters(queue.name, 1), await shop.settled(source, 1)]


async def behind_an_unfinished_record(shop: Shop) -> list[Any]:
    """Reject records after an acquired one: they are in the share partition's state."""
    queue = await shop.make("dlq.letters", 1, ENABLED)
    source = await shop.make("orders")
    await shop.configure(_group(queue.name))
    await shop.produce(source, 0, ORDERS)
    member = await shop.member(source)
    seen: list[Any] = [
        await member.fetch(source, 0, 4),
        await member.acknowledge(source, 0, 1, REJECT, ACCEPT, REJECT),
        await shop.letters(queue.name, 2),
        await eventually(lambda: shop.states(source), lambda state: "archiving" not in str(state), 10),
        await member.acknowledge(source, 0, 0, REJECT),
        await shop.letters(queue.name, 3),
        await shop.settled(source, 4),
    ]
    return seen


async def queue_given_up(shop: Shop) -> list[Any]:
    """Unset the group's dead letter topic: records are archived at once."""
    queue = await shop.make("dlq.letters", 1, ENABLED)
    source = await shop.make("orders")
    await shop.configure(_group(queue.name))
    await shop.configure(_group(""))
    await eventually(lambda: shop.describe(GROUP, shop.group, NAME), lambda rows: rows[0][1] == "", 10)
    await shop.produce(source, 0, ORDERS)
    member = await shop.member(source)
    return [
        await member.fetch(source, 0, 4),
        await member.acknowledge(source, 0, 0, *[REJECT] * 4),
        await shop.letters(queue.name, 0),
        await shop.settled(source, 4),
    ]


TABLE: Final[dict[str, Callable[[Shop], Awaitable[list[Any]]]]] = {
    play.__name__.replace("_", " "): play
    for play in (
        configurations,
        headers_only,
        copies,
        copies_of_packed_records,
        small_batches,
        too_small_batches,
        compacted,
        too_few_replicas,
        log_append_time,
        not_enabled,
        another_prefix,
        no_topic,
        created_topic,
        released_too_often,
        locks_timed_out,
        session_ended,
        behind_an_unfinished_record,
        queue_given_up,
    )
}
"""The cases by name."""


async def play(address: tuple[str, int], case: str) -> list[Any]:
    """Return the observations of a case on the broker at that address."""
    shop = await Shop.open(address, case)
    try:
        return await TABLE[case](shop)
    finally:
        shop.close()

"""Share groups: members that acquire and acknowledge records, and administration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.areas.area import Area, pick, request
from broker_sim_integration.fuzz.areas.log import batch
from broker_sim_integration.fuzz.areas.share_fetches import (
    CLIENTS,
    GROUPS,
    TOPICS,
    WAIT_MS,
    acknowledge,
    group_of,
    share_fetch,
)
from broker_sim_integration.fuzz.areas.share_members import coordinator_of, heartbeat, look, offsets
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

GROUP_RESOURCE: Final = 32
CONFIGS: Final = (
    ("share.auto.offset.reset", "earliest"),
    ("share.auto.offset.reset", "latest"),
    ("share.auto.offset.reset", "by_duration:PT1H"),
    ("share.isolation.level", "read_committed"),
    ("share.isolation.level", "read_uncommitted"),
    ("share.delivery.count.limit", "2"),
    ("share.delivery.count.limit", "3"),
    ("share.record.lock.duration.ms", "60000"),
    ("share.partition.max.record.locks", "100"),
    ("share.renew.acknowledge.enable", "false"),
    ("share.heartbeat.interval.ms", "6000"),
)
BAD_CONFIGS: Final = (
    ("share.auto.offset.reset", "own"),
    ("share.delivery.count.limit", "1"),
    ("share.delivery.count.limit", "11"),
    ("share.record.lock.duration.ms", "1"),
    ("share.partition.max.record.locks", "1"),
    ("share.session.timeout.ms", "1"),
    ("share.own", "1"),
)


def _produce(rng: random.Random) -> Request:
    topic, index = rng.choice(TOPICS)
    return _produce_to(topic, index, [batch(rng)], transactional_id=None, version=12)


def _produce_to(
    topic: str, index: int, batches: list[dict[str, Any]], *, transactional_id: str | None, version: int
) -> Request:
    return request(
        "p",
        f"leader {topic} {index}",
        "Produce",
        version,
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=5_000,
        topic_data=[
            {"name": topic, "topic_id": f"{topic[:-1]}.id>", "partition_data": [{"index": index, "records": batches}]}
        ],
    )


def _transaction(rng: random.Random) -> tuple[Request, ...]:
    """Return a transaction with records, committed, aborted or left open."""
    topic, index = rng.choice(TOPICS)
    producer: dict[str, Any] = {"producer_id": "<p.producer_id>", "producer_epoch": "<p.producer_epoch>"}
    begins = request(
        "p",
        "coordinator <txn1>",
        "InitProducerId",
        5,
        transactional_id="<txn1>",
        transaction_timeout_ms=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    writes = [
        _produce_to(
            topic,
            index,
            [{"values": ["t"] * count, "base_sequence": sequence, "is_transactional": True, **producer}],
            transactional_id="<txn1>",
            version=12,
        )
        for sequence, count in [(0, 2), (2, 1)][: rng.randint(1, 2)]
    ]
    ends = request(
        "p", "coordinator <txn1>", "EndTxn", 5, transactional_id="<txn1>", committed=rng.random() < 0.5, **producer
    )
    return (begins, *writes, ends) if rng.random() < 0.85 else (begins, *writes)


def _configure(rng: random.Random) -> Request:
    name, value = pick(rng, CONFIGS, BAD_CONFIGS, 6)
    return _configured(pick(rng, GROUPS, ("",), 30), name, value, pick(rng, [0], (1,), 6))


def _configured(group: str, name: str, value: str, operation: int = 0) -> Request:
    config = {"name": name, "value": value, "config_operation": operation}
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": [config]}
    return request("x", "first", "IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)


def _as_others(rng: random.Random) -> Request:
    """Send a share group requests for groups of other types."""
    group = pick(rng, GROUPS)
    at = f"coordinator {group}"
    topics = [{"name": "<topic1>", "partitions": [{"partition_index": 0}]}]
    match rng.randrange(5):
        case 0:
            return request("x", at, "DescribeGroups", 6, groups=[group])
        case 1:
            return request("x", at, "ConsumerGroupDescribe", 1, group_ids=[group])
        case 2:
            return request("x", at, "OffsetDelete", 0, group_id=group, topics=topics)
        case 3:
            groups = [{"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}]
            return request("x", at, "OffsetFetch", 9, groups=groups, require_stable=False)
        case _:
            return request("x", at, "DeleteGroups", 2, groups_names=[group])


def _delete_groups(rng: random.Random) -> Request:
    group = pick(rng, GROUPS, ("<nothing>", ""))
    return request("x", coordinator_of(rng, group), "DeleteGroups", 2, groups_names=[group])


def _delete_records(rng: random.Random) -> Request:
    topic, index = rng.choice(TOPICS)
    partitions = [{"partition_index": index, "offset": rng.choice([1, 2, 4, -1])}]
    return request(
        "x", f"leader {topic} {index}", "DeleteRecords", 2,
        timeout_ms=5_000, topics=[{"name": topic, "partitions": partitions}],
    )  # fmt: skip


def _create_topic(rng: random.Random) -> Request:
    """Create the third topic, which does not exist at the beginning."""
    count = rng.randint(1, 2)
    assignments = [{"partition_index": each, "broker_ids": ["<first>"]} for each in range(count)]
    topic = {"name": "<topic3>", "num_partitions": -1, "replication_factor": -1,
             "assignments": assignments, "configs": []}  # fmt: skip
    return request("x", "first", "CreateTopics", 4, topics=[topic], timeout_ms=10_000, validate_only=False)


def _delete_topic(rng: random.Random) -> Request:
    name = rng.choice(["<topic2>", "<topic3>"])
    return request("x", "first", "DeleteTopics", 6, topics=[{"name": name}], timeout_ms=10_000)


def _end_session(rng: random.Random) -> Request:
    """End the session of a member with acquired records, which become available for the others."""
    client, group = rng.choice(CLIENTS), group_of(rng)
    return acknowledge(rng, client, group, epoch=-1)


def _begin(rng: random.Random) -> tuple[Request, ...]:
    """Return requests that create what most others need: a group, records, a session."""
    begins = [_configured("<group1>", "share.auto.offset.reset", "earliest"), _heartbeat_of_first()]
    for _ in range(rng.randint(1, 3)):
        batches = [{"values": ["x"] * rng.randint(1, 4)}]
        begins.append(_produce_to("<topic1>", 0, batches, transactional_id=None, version=12))
    if rng.random() < 0.4:
        begins.insert(0, _configured("<group1>", "share.delivery.count.limit", "2"))
    if rng.random() < 0.4:
        begins.insert(0, _configured("<group1>", "share.isolation.level", "read_committed"))
    return tuple(begins)


def _heartbeat_of_first() -> Request:
    return request(
        "a",
        "coordinator <group1>",
        "ShareGroupHeartbeat",
        1,
        group_id="<group1>",
        member_id="member-a",
        member_epoch=0,
        rack_id=None,
        subscribed_topic_names=["<topic1>", "<topic2>"],
    )


def _consume(rng: random.Random) -> tuple[Request, ...]:
    """Fetch, and acknowledge some of the acquired records."""
    client, group = rng.choice(CLIENTS), group_of(rng)
    return (share_fetch(rng, client, group, wait_ms=WAIT_MS), acknowledge(rng, client, group))


AREA = Area(
    "share_groups",
    (TopicPlan("topic1", 2, configs={"retention.ms": "-1"}), TopicPlan("topic2")),
    {
        _consume: 8,
        share_fetch: 6,
        acknowledge: 4,
        _end_session: 1,
        heartbeat: 5,
        _produce: 5,
        _transaction: 2,
        offsets: 4,
        look: 2,
        _configure: 2,
        _as_others: 1,
        _delete_groups: 1,
        _delete_records: 1,
        _create_topic: 1,
        _delete_topic: 1,
    },
    lengths=(10, 22),
    begins=_begin,
)

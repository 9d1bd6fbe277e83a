"""Streams groups: members and tasks, offsets committed in members' epochs, and administration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.areas.area import Area, once, pick, request, several
from broker_sim_integration.fuzz.areas.offset_topics import deleted_topics, fetched_topics
from broker_sim_integration.fuzz.areas.streams_members import (
    ALL_GROUPS,
    LETTERS,
    client_of,
    coordinator_of,
    group_of,
    heartbeat,
    join,
    leave,
    life,
    look,
    member_of,
)
from broker_sim_integration.fuzz.areas.streams_topologies import GROUPS
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

GROUP_RESOURCE: Final = 32
PRODUCERS: Final = {"p": "<txn1>", "q": "<txn2>"}
"""The clients with transactions, each with its transactional id."""
TOPICS: Final = ("<topic1>", "<topic1>", "<topic2>", "<repartition1>")
NO_TOPICS: Final = ("<nothing>", "<changelog1>")
CONFIGS: Final = (
    ("streams.num.standby.replicas", "0"),
    ("streams.num.standby.replicas", "1"),
    ("streams.num.standby.replicas", "2"),
    ("streams.heartbeat.interval.ms", "6000"),
    ("streams.session.timeout.ms", "50000"),
    ("streams.assignment.interval.ms", "0"),
)
BAD_CONFIGS: Final = (
    ("streams.num.standby.replicas", "3"),
    ("streams.num.standby.replicas", "-1"),
    ("streams.heartbeat.interval.ms", "1"),
    ("streams.session.timeout.ms", "1"),
    ("streams.initial.rebalance.delay.ms", "-1"),
    ("streams.own", "1"),
)
TIMES: Final = {"timeout_ms": 10_000, "validate_only": False}


def _epoch_of(rng: random.Random, client: str) -> str | int:
    own = f"<{client}.member_epoch>"
    others: tuple[str | int, ...] = (own[:-1] + "-1>", own[:-1] + "-2>", own[:-1] + "+1>", 0, -1)
    return pick(rng, [own], others, 3)


def _member(rng: random.Random, client: str) -> tuple[str, str | int]:
    """Return the member that commits and its epoch; a tool has neither."""
    if rng.randrange(6) == 0:
        return "", -1
    return member_of(rng, client), _epoch_of(rng, client)


def _partitions(rng: random.Random) -> list[int]:
    return several(rng, [0, 1, pick(rng, [0], (7, -1), 12)])


def _offsets(rng: random.Random) -> list[dict[str, Any]]:
    topics = []
    for _ in range(rng.randint(1, 2)):
        name = pick(rng, TOPICS, NO_TOPICS, 10)
        partitions = [
            {
                "partition_index": index,
                "committed_offset": rng.choice([0, 1, 5]),
                "committed_leader_epoch": -1,
                "committed_metadata": pick(rng, [""], ("text", None)),
            }
            for index in _partitions(rng)
        ]
        topics.append({"name": name, "partitions": partitions})
    return once(topics, "name")


def _commit(rng: random.Random) -> Request:
    group = group_of(rng)
    client = client_of(group, rng.choice(LETTERS))
    member_id, epoch = _member(rng, client)
    return request(
        client,
        coordinator_of(rng, group),
        "OffsetCommit",
        pick(rng, [9, 10], (8, 2), 10),
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        group_instance_id=pick(rng, [None], ("i1",), 25),
        retention_time_ms=-1,
        topics=[one | {"topic_id": f"{one['name'][:-1]}.id>"} for one in _offsets(rng)],
    )


def _begin_transaction(rng: random.Random) -> Request:
    return _begun(rng.choice(list(PRODUCERS)))


def _begun(client: str) -> Request:
    name = PRODUCERS[client]
    return request(
        client,
        f"coordinator {name}",
        "InitProducerId",
        5,
        transactional_id=name,
        transaction_timeout_ms=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )


def _producer(client: str) -> dict[str, Any]:
    return {
        "transactional_id": PRODUCERS[client],
        "producer_id": f"<{client}.producer_id>",
        "producer_epoch": f"<{client}.producer_epoch>",
    }


def _commit_in_transaction(rng: random.Random) -> tuple[Request, ...]:
    """Add a group to a transaction, commit its offsets with or without a member, and usually end it."""
    client, group = rng.choice(list(PRODUCERS)), rng.choice(GROUPS)
    producer, at = _producer(client), f"coordinator {PRODUCERS[client]}"
    member_id, epoch = _member(rng, client_of(group, rng.choice(LETTERS)))
    version = rng.choice([5, 5, 4, 3, 0])
    commits = request(
        client,
        coordinator_of(rng, group),
        "TxnOffsetCommit",
        version,
        **producer,
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        group_instance_id=pick(rng, [None], ("i1",), 20),
        topics=_offsets(rng),
    )
    requests = [commits]
    if version < 5 or rng.randrange(6) == 0:
        requests.insert(0, request(client, at, "AddOffsetsToTxn", 4, **producer, group_id=group))
    if rng.randrange(5):
        ends = request(client, at, "EndTxn", rng.choice([5, 4]), **producer, committed=rng.random() < 0.7)
        requests.append(ends)
    return tuple(requests)


def _fetch_offsets(rng: random.Random) -> Request:
    group = group_of(rng)
    client = client_of(group, rng.choice(LETTERS))
    names = several(rng, TOPICS) if rng.random() < 0.6 else None
    topics = fetched_topics(names, partial(_partitions, rng))
    as_member = rng.random() < 0.5
    return request(
        client,
        coordinator_of(rng, group),
        "OffsetFetch",
        rng.choice([9, 10]),
        groups=[
            {
                "group_id": one,
                "member_id": member_of(rng, client) if as_member else pick(rng, [None], ("",), 6),
                "member_epoch": _epoch_of(rng, client) if as_member else pick(rng, [-1], (0,), 10),
                "topics": topics,
            }
            for one in dict.fromkeys([group, *several(rng, ALL_GROUPS, 1)][: rng.randint(1, 2)])
        ],
        require_stable=rng.random() < 0.3,
    )


def _delete_offsets(rng: random.Random) -> Request:
    group = group_of(rng)
    topics = deleted_topics(rng, TOPICS, NO_TOPICS, partial(_partitions, rng))
    return request("x", coordinator_of(rng, group), "OffsetDelete", 0, group_id=group, topics=topics)


def _delete_groups(rng: random.Random) -> Request:
    names = several(rng, [*ALL_GROUPS, "<nothing>"], 3)
    return request("x", coordinator_of(rng, names[0]), "DeleteGroups", 2, groups_names=names)


def _configure(rng: random.Random) -> Request:
    name, value = pick(rng, CONFIGS, BAD_CONFIGS, 6)
    config = {"name": name, "value": value, "config_operation": pick(rng, [0], (1,), 6)}
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": rng.choice(GROUPS), "configs": [config]}
    return request("x", "first", "IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)


def _as_others(rng: random.Random) -> Request:
    """Send a streams group requests for groups of other types or from their members."""
    group = rng.choice(GROUPS)
    client = client_of(group, rng.choice(LETTERS))
    at = coordinator_of(rng, group)
    match rng.randrange(5):
        case 0:
            return request("x", at, "DescribeGroups", 6, groups=[group])
        case 1:
            return request("x", at, "ConsumerGroupDescribe", 1, group_ids=[group])
        case 2:
            return request("x", at, "ShareGroupDescribe", 1, group_ids=[group])
        case 3:
            members = [{"member_id": f"member-{client}", "group_instance_id": None, "reason": None}]
            return request(client, at, "LeaveGroup", 5, group_id=group, members=members)
        case _:
            return request(
                client,
                at,
                "ConsumerGroupHeartbeat",
                1,
                group_id=group,
                member_id=f"member-{client}",
                member_epoch=rng.choice([0, -1]),
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=["<topic1>"],
                topic_partitions=[],
            )


def _change_topics(rng: random.Random) -> Request:
    """Create, enlarge or delete a topic that groups read or an internal one."""
    assignments = [{"partition_index": each, "broker_ids": ["<first>"]} for each in range(rng.randint(1, 3))]
    match rng.randrange(5):
        case 0 | 1:
            name = pick(rng, ["<topic3>"], ("<topic2>", "<changelog3>", "<repartition2>"), 3)
            internal_topic = {"name": name, "num_partitions": -1, "replication_factor": -1,
                    "assignments": assignments, "configs": []}  # fmt: skip
            return request("x", "first", "CreateTopics", 4, topics=[internal_topic], **TIMES)
        case 2 | 3:
            name = pick(rng, ["<topic2>"], ("<topic1>", "<changelog3>"), 4)
            larger = {"name": name, "count": rng.randint(2, 3), "assignments": None}
            return request("x", "first", "CreatePartitions", 3, topics=[larger], **TIMES)
        case _:
            name = rng.choice(["<topic2>", "<topic3>", "<changelog1>", "<repartition1>"])
            return request("x", "first", "DeleteTopics", 6, topics=[{"name": name}], timeout_ms=10_000)


def _begin(rng: random.Random) -> tuple[Request, ...]:
    """Return requests that create what most others need: producers, and a group with members."""
    return (*map(_begun, PRODUCERS), *life(rng))


AREA = Area(
    "streams_groups",
    (TopicPlan("topic1", 2), TopicPlan("topic2")),
    {
        life: 8,
        join: 2,
        heartbeat: 3,
        leave: 2,
        look: 5,
        _commit: 7,
        _begin_transaction: 1,
        _commit_in_transaction: 5,
        _fetch_offsets: 4,
        _delete_offsets: 1,
        _delete_groups: 1,
        _configure: 1,
        _as_others: 1,
        _change_topics: 2,
    },
    lengths=(10, 24),
    begins=_begin,
)

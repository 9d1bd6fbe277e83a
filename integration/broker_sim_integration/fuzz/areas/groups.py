"""Groups of both protocols: members that join, sync, commit and leave, and administration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.fuzz.areas.area import Area, once, pick, request, several
from broker_sim_integration.fuzz.areas.offset_topics import deleted_topics, fetched_topics
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

CLIENTS: Final = ("a", "b", "c")
CLASSIC: Final = ("<group1>", "<group1>", "<group1>", "<group2>")
CONSUMER: Final = ("<group3>", "<group3>", "<group3>", "<group1>")
ALL_GROUPS: Final = ("<group1>", "<group2>", "<group3>")
TOPICS: Final = ("<topic1>", "<topic1>", "<topic2>")
NO_TOPICS: Final = ("<nothing>", "")
INSTANCES: Final = ("i1", "i2", "")
SUBSCRIPTION: Final = f"hex:{subscription(['t']).hex()}"


def _coordinator(rng: random.Random, group: str) -> str:
    name = group if "<" in group else "<group1>"
    return f"other {name}" if rng.randrange(25) == 0 else f"coordinator {name}"


def _group(rng: random.Random, pool: tuple[str, ...]) -> str:
    return pick(rng, pool, (*ALL_GROUPS, "<nothing>", ""), 12)


def _member(rng: random.Random, client: str) -> str:
    others = ("", "nobody", *(f"<{one}.member_id>" for one in CLIENTS))
    return pick(rng, [f"<{client}.member_id>"], others)


def _generation(rng: random.Random, client: str) -> str | int:
    own = f"<{client}.generation_id>"
    others: tuple[str | int, ...] = (own[:-1] + "+1>", own[:-1] + "-1>", -1, 0, 1)
    return pick(rng, [own], others, 6)


def _instance(rng: random.Random) -> str | None:
    return pick(rng, [None], INSTANCES, 5)


def _join(rng: random.Random) -> tuple[Request, ...]:
    client, group = rng.choice(CLIENTS), _group(rng, CLASSIC)
    metadata = pick(rng, ["m", SUBSCRIPTION], ("", "hex:00"), 10)
    names = pick(rng, [["range"], ["range", "roundrobin"]], ([], ["own"]))
    version = pick(rng, [9, 9, 5, 4], range(10))
    joins = request(
        client,
        _coordinator(rng, group),
        "JoinGroup",
        version,
        group_id=group,
        session_timeout_ms=pick(rng, [30_000], (0, -1, 5_999, 10_000_000), 12),
        # Longer than any play: the effect of a short timeout would depend on the speed of the play.
        rebalance_timeout_ms=60_000,
        member_id=_member(rng, client),
        group_instance_id=_instance(rng),
        protocol_type=pick(rng, ["consumer"], ("tool", ""), 10),
        protocols=[{"name": name, "metadata": metadata} for name in names],
        reason=pick(rng, [None], ("why",)),
    )
    # A new member gets its id first, and joins with it.
    return (joins, joins) if version >= 4 and rng.random() < 0.6 else (joins,)


def _sync(rng: random.Random) -> Request:
    client, group = rng.choice(CLIENTS), _group(rng, CLASSIC)
    members = pick(rng, [[f"<{one}.member_id>" for one in CLIENTS]], ([], ["nobody"]), 5)
    return request(
        client,
        _coordinator(rng, group),
        "SyncGroup",
        pick(rng, [5, 5, 3], range(6)),
        group_id=group,
        generation_id=_generation(rng, client),
        member_id=_member(rng, client),
        group_instance_id=_instance(rng),
        protocol_type=pick(rng, ["consumer"], ("tool", None, ""), 10),
        protocol_name=pick(rng, ["range"], ("roundrobin", None, ""), 8),
        assignments=[{"member_id": one, "assignment": f"for {i}"} for i, one in enumerate(members)],
    )


def _heartbeat(rng: random.Random) -> Request:
    client, group = rng.choice(CLIENTS), _group(rng, CLASSIC)
    return request(
        client,
        _coordinator(rng, group),
        "Heartbeat",
        pick(rng, [4], range(5)),
        group_id=group,
        generation_id=_generation(rng, client),
        member_id=_member(rng, client),
        group_instance_id=_instance(rng),
    )


def _leave(rng: random.Random) -> Request:
    client, group = rng.choice(CLIENTS), _group(rng, CLASSIC)
    leaving = several(rng, [client, rng.choice(CLIENTS)])
    return request(
        client,
        _coordinator(rng, group),
        "LeaveGroup",
        pick(rng, [5, 5, 4, 2], range(6)),
        group_id=group,
        member_id=_member(rng, client),
        members=once(
            ({"member_id": _member(rng, one), "group_instance_id": _instance(rng), "reason": None} for one in leaving),
            "member_id",
        ),
    )


def _consumer_heartbeat(rng: random.Random) -> Request:
    client, group = rng.choice(CLIENTS), _group(rng, CONSUMER)
    own = f"<{client}.member_epoch>"
    names = pick(rng, [["<topic1>"], ["<topic1>", "<topic2>"]], (None, [], ["<nothing>"]), 4)
    owned = pick(rng, [None, []], ([{"topic_id": "<topic1.id>", "partitions": several(rng, [0, 1])}],), 4)
    return request(
        client,
        _coordinator(rng, group),
        "ConsumerGroupHeartbeat",
        pick(rng, [1], (0,), 4),
        group_id=group,
        member_id=pick(rng, [f"member-{client}"], (f"<{client}.member_id>", "", "member-a"), 12),
        member_epoch=pick(rng, [own, own, 0], (-1, -2, -3, own[:-1] + "+1>", own[:-1] + "-1>"), 4),
        instance_id=pick(rng, [None], INSTANCES, 8),
        rack_id=None,
        rebalance_timeout_ms=pick(rng, [60_000], (-1, 0), 6),
        subscribed_topic_names=names,
        subscribed_topic_regex=pick(rng, [None], ("", ".*nothing", "("), 15),
        server_assignor=pick(rng, [None], ("range", "uniform", "own", ""), 6),
        topic_partitions=owned,
    )


def _partitions(rng: random.Random) -> list[int]:
    return several(rng, [0, 1, pick(rng, [0], (7, -1))])


def _commit(rng: random.Random) -> Request:
    client, group = rng.choice(CLIENTS), _group(rng, ALL_GROUPS)
    as_member = rng.random() < 0.6
    epoch = rng.choice([_generation(rng, client), f"<{client}.member_epoch>"])
    topics = []
    for _ in range(rng.randint(1, 2)):
        name = pick(rng, TOPICS, NO_TOPICS)
        entry = {
            "name": name,
            "topic_id": f"{name[:-1]}.id>" if name else None,
            "partitions": [
                {
                    "partition_index": index,
                    "committed_offset": rng.choice([0, 1, 5, -1]),
                    "committed_leader_epoch": rng.choice([-1, 0, 3]),
                    "committed_metadata": pick(rng, ["", "text"], (None, "x" * 5000)),
                }
                for index in _partitions(rng)
            ],
        }
        topics.append({key: value for key, value in entry.items() if value is not None})
    return request(
        client,
        _coordinator(rng, group),
        "OffsetCommit",
        pick(rng, [9, 10, 8], range(2, 11)),
        group_id=group,
        generation_id_or_member_epoch=epoch if as_member else -1,
        member_id=_member(rng, client) if as_member else "",
        group_instance_id=_instance(rng) if as_member else None,
        retention_time_ms=-1,
        topics=once(topics, "name"),
    )


def _fetch_offsets(rng: random.Random) -> Request:
    client, group = rng.choice(CLIENTS), _group(rng, ALL_GROUPS)
    names = several(rng, TOPICS) if rng.random() < 0.7 else None
    version = pick(rng, [9, 10, 8, 7], range(1, 11))
    topics = fetched_topics(names, partial(_partitions, rng))
    as_member = rng.random() < 0.4
    return request(
        client,
        _coordinator(rng, group),
        "OffsetFetch",
        version,
        group_id=group,
        topics=topics and [{key: one[key] for key in ("name", "partition_indexes")} for one in topics],
        groups=[
            {
                "group_id": one,
                "member_id": f"member-{client}" if as_member else pick(rng, [None], ("", "nobody")),
                "member_epoch": f"<{client}.member_epoch>" if as_member else -1,
                "topics": topics,
            }
            for one in dict.fromkeys([group, *several(rng, ALL_GROUPS, 1)][: rng.randint(1, 2)])
        ],
        require_stable=rng.random() < 0.3,
    )


def _delete_offsets(rng: random.Random) -> Request:
    group = _group(rng, ALL_GROUPS)
    topics = deleted_topics(rng, TOPICS, NO_TOPICS, partial(_partitions, rng))
    return request(rng.choice(CLIENTS), _coordinator(rng, group), "OffsetDelete", 0, group_id=group, topics=topics)


def _administer(rng: random.Random) -> Request:
    groups = several(rng, [*ALL_GROUPS, pick(rng, ALL_GROUPS, ("<nothing>", ""))])
    at = _coordinator(rng, groups[0])
    client = rng.choice(CLIENTS)
    match rng.randrange(9):
        case 0 | 1:
            return request(client, at, "DeleteGroups", rng.choice([1, 2]), groups_names=groups)
        case 2 | 3:
            return request(client, at, "DescribeGroups", pick(rng, [6, 5], range(7)), groups=groups)
        case 4 | 5:
            version = rng.choice([0, 1])
            return request(client, at, "ConsumerGroupDescribe", version, group_ids=groups)
        case 6:
            states = ("Stable", "Empty", "stable", "CompletingRebalance", "Dead", "own")
            return request(
                client,
                at,
                "ListGroups",
                pick(rng, [5], range(6)),
                states_filter=several(rng, states) if rng.random() < 0.5 else [],
                types_filter=several(rng, ("classic", "Consumer", "own")) if rng.random() < 0.3 else [],
            )
        case _:
            return request(
                client,
                "first",
                "FindCoordinator",
                pick(rng, [6, 4, 3], range(1, 7)),
                key=groups[0],
                key_type=pick(rng, [0], (1, 2, 3, -1)),
                coordinator_keys=groups,
            )


AREA = Area(
    "groups",
    (TopicPlan("topic1", 2), TopicPlan("topic2")),
    {
        _join: 8,
        _sync: 6,
        _heartbeat: 3,
        _leave: 2,
        _consumer_heartbeat: 8,
        _commit: 4,
        _fetch_offsets: 4,
        _delete_offsets: 1,
        _administer: 4,
    },
)

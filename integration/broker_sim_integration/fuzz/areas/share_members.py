"""Members of share groups that join, stay and leave, and requests that describe and administer the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.fuzz.areas.area import pick, request, several
from broker_sim_integration.fuzz.areas.share_fetches import CLIENTS, GROUPS, group_of, member_of

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

NO_TOPICS: Final = ("<nothing>", "")
FAR_OFFSETS: Final = (-1, -7, -(1 << 63), (1 << 63) - 1)


def coordinator_of(rng: random.Random, group: str) -> str:
    """Return the broker of a request about a group, usually its coordinator."""
    name = group if "<" in group else "<group1>"
    return f"other {name}" if rng.randrange(30) == 0 else f"coordinator {name}"


def heartbeat(rng: random.Random, client: str = "", group: str = "") -> Request:
    """Join, stay or leave."""
    client, group = client or rng.choice(CLIENTS), group or pick(rng, [group_of(rng)], ("",), 40)
    own = f"<{client}.member_epoch>"
    names = pick(rng, [["<topic1>"], ["<topic1>", "<topic2>"], ["<topic1>", "<topic3>"]], (None, [], ["<nothing>"]), 4)
    return request(
        client,
        coordinator_of(rng, group),
        "ShareGroupHeartbeat",
        1,
        group_id=group,
        member_id=member_of(rng, client),
        member_epoch=pick(rng, [own, own, 0], (-1, -2, own[:-1] + "+1>", own[:-1] + "-1>"), 5),
        rack_id=pick(rng, [None], ("rack", "", "\0", "\u2003"), 12),
        subscribed_topic_names=names,
    )


def _partitions(rng: random.Random) -> list[int]:
    return several(rng, [0, 1, pick(rng, [0], (7, -1))])


def offsets(rng: random.Random) -> Request:
    """Describe, alter or delete the offsets of a group."""
    group = pick(rng, [group_of(rng)], ("",), 30)
    at = coordinator_of(rng, group)
    names = several(rng, ["<topic1>", pick(rng, ["<topic1>", "<topic2>", "<topic3>"], NO_TOPICS)])
    match rng.randrange(5):
        case 0 | 1:
            numbers = pick(rng, [_partitions(rng)], ([],), 12)
            topics = [{"topic_name": name, "partitions": numbers} for name in names]
            asked = {"group_id": group, "topics": pick(rng, [topics, None], ([],), 10)}
            version = rng.choice([0, 1])
            return request("x", at, "DescribeShareGroupOffsets", version, groups=[asked])
        case 2 | 3:
            altered = [
                {
                    "topic_name": name,
                    "partitions": [
                        {"partition_index": index, "start_offset": pick(rng, [0, 0, 1, 3, 50], FAR_OFFSETS, 12)}
                        for index in pick(rng, [_partitions(rng)], ([],), 12)
                    ],
                }
                for name in names
            ]
            return request("x", at, "AlterShareGroupOffsets", 0, group_id=group, topics=altered)
        case _:
            deleted = [{"topic_name": name} for name in names]
            return request("x", at, "DeleteShareGroupOffsets", 0, group_id=group, topics=deleted)


def look(rng: random.Random) -> Request:
    """Describe and list groups."""
    groups = several(rng, [*GROUPS, pick(rng, GROUPS, ("<nothing>", ""))])
    at = coordinator_of(rng, groups[0])
    if rng.random() < 0.7:
        return request("x", at, "ShareGroupDescribe", 1, group_ids=groups)
    states = ("Stable", " stable\0", "\u2003Stable", "Empty", "Dead", "own")
    return request(
        "x",
        at,
        "ListGroups",
        5,
        states_filter=several(rng, states) if rng.random() < 0.4 else [],
        types_filter=several(rng, ("share", "Share", " share", "classic")) if rng.random() < 0.5 else [],
    )

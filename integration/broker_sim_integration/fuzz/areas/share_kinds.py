"""Share groups beside groups of both other types: each is named in the APIs of all types, and in state requests.

A group has the type of its first member, so the same request may name a group of its type, of another type, or none.
There are no fetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.fuzz.areas import groups, share_states
from broker_sim_integration.fuzz.areas.area import Area, pick, request, several
from broker_sim_integration.fuzz.areas.share_members import coordinator_of, heartbeat, look, offsets
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

CLIENTS: Final = ("a", "b", "c")
GROUPS: Final = ("<group1>", "<group2>", "<group3>")
GROUP_OFFSETS_VERSIONS: Final = (0, 1)
MOST_PARTITIONS: Final = 4


def _heartbeat(rng: random.Random) -> Request:
    """Send a heartbeat of a share group's member."""
    return heartbeat(rng, rng.choice(CLIENTS), rng.choice(GROUPS))


def _leave(rng: random.Random) -> Request:
    group, client = rng.choice(GROUPS), rng.choice(CLIENTS)
    return request(
        client,
        coordinator_of(rng, group),
        "ShareGroupHeartbeat",
        1,
        group_id=group,
        member_id=f"member-{client}",
        member_epoch=-1,
        rack_id=None,
        subscribed_topic_names=None,
    )


def _offsets_of_several(rng: random.Random) -> Request:
    """Describe the offsets of several groups, for all topics or some."""
    named = [{"topic_name": "<topic1>", "partitions": [0, 1]}]
    asked = [
        {"group_id": group, "topics": pick(rng, [None, named], ([],), 8)}
        for group in several(rng, [*GROUPS, "<nothing>", ""], 4)
    ]
    version = rng.choice(GROUP_OFFSETS_VERSIONS)
    at = coordinator_of(rng, "<group1>")
    return request("x", at, "DescribeShareGroupOffsets", version, groups=asked)


def _describe(rng: random.Random) -> Request:
    return request(
        "x",
        coordinator_of(rng, "<group1>"),
        "ShareGroupDescribe",
        1,
        group_ids=several(rng, [*GROUPS, "<nothing>", ""], 4),
        include_authorized_operations=rng.random() < 0.3,
    )


def _delete_groups(rng: random.Random) -> Request:
    names = several(rng, [*GROUPS, "<nothing>"], 4)
    return request("x", coordinator_of(rng, names[0]), "DeleteGroups", 2, groups_names=names)


def _create_partitions(rng: random.Random) -> Request:
    topic = {"name": "<topic2>", "count": rng.randint(2, MOST_PARTITIONS), "assignments": None}
    return request("x", "first", "CreatePartitions", 3, topics=[topic], timeout_ms=10_000, validate_only=False)


def _delete_topic(rng: random.Random) -> Request:
    del rng
    topics = [{"name": "<topic2>"}]
    return request("x", "first", "DeleteTopics", 6, topics=topics, timeout_ms=10_000)


AREA = Area(
    "share_kinds",
    (TopicPlan("topic1", 2), TopicPlan("topic2")),
    {
        **groups.AREA.draws,
        _heartbeat: 12,
        _leave: 5,
        offsets: 10,
        _offsets_of_several: 3,
        _describe: 3,
        look: 2,
        _delete_groups: 2,
        share_states.initialize: 3,
        share_states.write: 2,
        share_states.read: 2,
        share_states.summarize: 3,
        share_states.delete: 1,
        _create_partitions: 1,
        _delete_topic: 1,
    },
    lengths=(20, 40),
)

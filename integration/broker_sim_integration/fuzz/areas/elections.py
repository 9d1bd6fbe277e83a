"""Leadership: preferred and unclean elections, reassignments, and metadata while brokers go down and return."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim_integration.fuzz.areas.area import CONFIGS, Area, pick, request, several
from broker_sim_integration.fuzz.areas.replication import OLD, QUICK_FENCING, leader_request
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

TOPICS: Final = ("topic1", "topic1", "topic2", "topic3")
ROLES: Final = ("<first>", "<second>", "<third>")
TIMEOUT: Final = 10_000


def _elect(rng: random.Random) -> Request:
    names = several(rng, TOPICS)
    topics = [{"topic": f"<{name}>", "partitions": several(rng, [0, 1, 7])} for name in names]
    return request(
        "a",
        "first",
        "ElectLeaders",
        2,
        election_type=pick(rng, [0, 1], (2,), 20),
        topic_partitions=pick(rng, [topics], ([],), 25),
        timeout_ms=TIMEOUT,
    )


def _reassign(rng: random.Random) -> Request:
    name = rng.choice(TOPICS)
    replicas = rng.sample(list(ROLES), rng.randint(1, 3))
    bad: tuple[list[str | int], ...] = ([*replicas, replicas[0]], [], ["<first>", 9])
    partition = {"partition_index": pick(rng, [0, 1], (7,), 15), "replicas": pick(rng, [replicas], (None, *bad), 4)}
    return request(
        "a",
        "first",
        "AlterPartitionReassignments",
        0,
        timeout_ms=TIMEOUT,
        topics=[{"name": pick(rng, [f"<{name}>"], ("<nothing>",), 20), "partitions": [partition]}],
    )


def _list_reassignments(rng: random.Random) -> Request:
    topics = [{"name": f"<{rng.choice(TOPICS)}>", "partition_indexes": several(rng, [0, 1, 7])}]
    return request("a", "first", "ListPartitionReassignments", 0, timeout_ms=TIMEOUT, topics=topics)


def _metadata(rng: random.Random) -> Request:
    return request(
        rng.choice(["a", "b"]),
        "first",
        "DescribeTopicPartitions",
        0,
        topics=[{"name": f"<{name}>"} for name in dict.fromkeys(TOPICS)],
        response_partition_limit=100,
        cursor=None,
    )


def _configure(rng: random.Random) -> Request:
    name, value = rng.choice(
        [
            ("unclean.leader.election.enable", "true"),
            ("unclean.leader.election.enable", "false"),
            ("min.insync.replicas", "1"),
            ("min.insync.replicas", "2"),
        ]
    )
    config = {"name": name, "value": value, "config_operation": 0}
    resource = {"resource_type": 2, "resource_name": f"<{rng.choice(TOPICS)}>", "configs": [config]}
    return request("a", "first", "IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)


AREA = Area(
    "elections",
    (
        TopicPlan("topic1", 2, ("second", "third", "first"), OLD | {"min.insync.replicas": "2"}),
        TopicPlan("topic2", 2, ("second", "third"), OLD),
        TopicPlan("topic3", 1, ("third",), OLD),
    ),
    {_elect: 3, _reassign: 2, _list_reassignments: 1, _metadata: 3, _configure: 1, partial(leader_request, TOPICS): 2},
    lengths=(3, 6),
    configs=CONFIGS | QUICK_FENCING,
    faults=True,
)

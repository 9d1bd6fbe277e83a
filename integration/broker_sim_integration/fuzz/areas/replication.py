"""Replicated partitions while a follower or the leader is down: produces, fetches, offsets, deletions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim_integration.fuzz.areas.area import CONFIGS, Area, pick, request
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

CLIENTS: Final = ("a", "b")
TOPICS: Final = ("topic1", "topic1", "topic2", "topic3")
QUICK_FENCING: Final = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


def leader_request(topics: tuple[str, ...], rng: random.Random) -> Request:
    """Return a request to the leader of a partition at the time of the play."""
    topic, client = rng.choice(topics), rng.choice(CLIENTS)
    index = rng.choice([0, 0, 1])
    at = pick(rng, [f"leader <{topic}> {index}"], ("first",), 8)
    name = f"<{topic}>"
    epoch = pick(rng, [-1], (0, 1, 2, 5), 3)
    match rng.randrange(8):
        case 0 | 1 | 2:
            data = {"index": index, "records": [{"values": ["x"] * rng.randint(1, 2)}]}
            return request(
                client,
                at,
                "Produce",
                rng.choice([9, 11, 12]),
                transactional_id=None,
                acks=rng.choice([-1, -1, 1]),
                timeout_ms=4_000,
                topic_data=[{"name": name, "partition_data": [data]}],
            )
        case 3 | 4:
            wanted = {
                "partition": index,
                "current_leader_epoch": epoch,
                "fetch_offset": pick(rng, [0, 1, 2], (9,)),
                "last_fetched_epoch": pick(rng, [-1], (0, 1)),
                "log_start_offset": -1,
                "partition_max_bytes": 1_000_000,
            }
            return request(
                client,
                at,
                "Fetch",
                rng.choice([11, 12]),
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1_000_000,
                isolation_level=0,
                session_id=0,
                session_epoch=-1,
                topics=[{"topic": name, "partitions": [wanted]}],
            )
        case 5:
            asked = {"partition_index": index, "current_leader_epoch": epoch, "timestamp": rng.choice([-1, -2, -3])}
            topics_asked = [{"name": name, "partitions": [asked]}]
            return request(client, at, "ListOffsets", 7, replica_id=-1, isolation_level=0, topics=topics_asked)
        case 6:
            of_epoch = {"partition": index, "current_leader_epoch": epoch, "leader_epoch": rng.choice([0, 1, 2])}
            topics_of = [{"topic": name, "partitions": [of_epoch]}]
            return request(client, at, "OffsetForLeaderEpoch", 4, replica_id=-1, topics=topics_of)
        case _:
            deleted = {"partition_index": index, "offset": rng.choice([-1, 1])}
            return request(
                client, at, "DeleteRecords", 2, timeout_ms=1_000, topics=[{"name": name, "partitions": [deleted]}]
            )


def _metadata(rng: random.Random) -> Request:
    return request(
        rng.choice(CLIENTS),
        "first",
        "Metadata",
        12,
        topics=[{"name": f"<{name}>"} for name in dict.fromkeys(TOPICS)],
        allow_auto_topic_creation=False,
    )


OLD: Final = {"retention.ms": "-1"}
AREA = Area(
    "replication",
    (
        TopicPlan("topic1", 2, ("second", "third", "first"), OLD | {"min.insync.replicas": "2"}),
        TopicPlan("topic2", 2, ("second", "third"), OLD | {"min.insync.replicas": "2"}),
        TopicPlan("topic3", 2, ("third", "first"), OLD),
    ),
    {partial(leader_request, TOPICS): 8, _metadata: 2},
    lengths=(3, 7),
    configs=CONFIGS | QUICK_FENCING,
    faults=True,
)

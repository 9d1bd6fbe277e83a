"""Logs of partitions: produces of all kinds, fetches with and without a session, offsets, deletions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.areas.area import Area, once, pick, request, several
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

CLIENTS: Final = ("a", "b")
TOPICS: Final = ("<topic1>", "<topic1>", "<topic2>", "<topic3>", "<topic4>")
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


def _topic(rng: random.Random) -> tuple[str, str]:
    name = pick(rng, TOPICS, ("<nothing>",), 25)
    return name, f"{name[:-1]}.id>"


def _partition(rng: random.Random) -> int:
    return pick(rng, [0, 0, 1], (7, -1), 25)


def batch(rng: random.Random, **header: Any) -> dict[str, Any]:
    """Return a batch of a few records, sometimes an invalid one."""
    count = rng.randint(1, 3)
    drawn: dict[str, Any] = {"values": [pick(rng, ["x", "yy"], (None, "z" * 300)) for _ in range(count)], **header}
    if rng.random() < 0.5:
        drawn["keys"] = [pick(rng, ["k1", "k2"], (None,)) for _ in range(count)]
    if rng.random() < 0.3:
        drawn["timestamps"] = [rng.choice([0, 5, 1000, -1000]) for _ in range(count)]
    if rng.random() < 0.2:
        drawn["codec"] = rng.choice(CODECS)
    if rng.random() < 0.04:
        drawn["damage"] = rng.choice([0, 12, 17, 20, 22, 26, 30, 57, 60, 61, 65])
    if rng.random() < 0.03:
        drawn[rng.choice(["log_append_time", "is_transactional", "is_control"])] = True
    return drawn


def _idempotent(rng: random.Random, client: str) -> dict[str, Any]:
    return {
        "producer_id": pick(rng, [f"<{client}.producer_id>"], (4_000_000, 0), 10),
        "producer_epoch": pick(rng, [f"<{client}.producer_epoch>"], (1, 2, 0), 6),
        "base_sequence": rng.choice([0, 1, 1, 2, 2, 3, 4, 2**31 - 1]),
    }


def produce(rng: random.Random) -> Request:
    """Produce to one partition or two."""
    client = rng.choice(CLIENTS)
    topics = []
    for _ in range(pick(rng, [1], (2,), 5)):
        name, topic_id = _topic(rng)
        header = _idempotent(rng, client) if rng.random() < 0.4 else {}
        batches = [batch(rng, **header) for _ in range(pick(rng, [1], (2,), 30))]
        data = {"index": _partition(rng), "records": batches}
        topics.append({"name": name, "topic_id": topic_id, "partition_data": [data]})
    return request(
        client,
        pick(rng, ["first"], ("second",), 30),
        "Produce",
        pick(rng, [13, 12, 9], range(3, 14)),
        transactional_id=None,
        acks=pick(rng, [-1, 1], (2, -2), 25),
        timeout_ms=5_000,
        topic_data=once(topics, "name"),
    )


def fetch(rng: random.Random) -> Request:
    """Fetch without a session, or open or continue one."""
    client = rng.choice(CLIENTS)
    topics = []
    for _ in range(pick(rng, [1, 2], (0,), 10)):
        name, topic_id = _topic(rng)
        partitions = [
            {
                "partition": index,
                "current_leader_epoch": pick(rng, [-1], (0, 1, 5)),
                "fetch_offset": pick(rng, [0, 0, 1, 3], (100, -1, 6)),
                "last_fetched_epoch": pick(rng, [-1], (0, 1), 20),
                "log_start_offset": -1,
                "partition_max_bytes": pick(rng, [1_000_000], (1, 0, 100), 5),
            }
            for index in several(rng, [0, 1, _partition(rng)])
        ]
        topics.append({"topic": name, "topic_id": topic_id, "partitions": partitions})
    session = pick(rng, [(0, -1), (0, 0), (f"<{client}.session_id>", rng.choice([1, 1, 2, 3]))],
                   ((0, 5), (12345, 1), (f"<{client}.session_id>", -1)), 8)  # fmt: skip
    name, topic_id = _topic(rng)
    forgotten = [{"topic": name, "topic_id": topic_id, "partitions": [0]}]
    return request(
        client,
        "first",
        "Fetch",
        pick(rng, [17, 12, 11], range(4, 18)),
        replica_id=-1,
        max_wait_ms=pick(rng, [0], (30, -1), 4),
        min_bytes=pick(rng, [1], (0, 1000), 5),
        max_bytes=pick(rng, [1_000_000], (1, 100, 0), 6),
        isolation_level=rng.choice([0, 1]),
        session_id=session[0],
        session_epoch=session[1],
        topics=once(topics, "topic"),
        forgotten_topics_data=forgotten if rng.random() < 0.15 else [],
    )


def list_offsets(rng: random.Random) -> Request:
    """Look up offsets by timestamp, or the ends of partitions."""
    topics = [
        {
            "name": _topic(rng)[0],
            "partitions": [
                {
                    "partition_index": index,
                    "current_leader_epoch": pick(rng, [-1], (0, 1)),
                    "timestamp": rng.choice([-1, -2, -3, -4, -5, -6, 0, 1_700_000_000_000, 1_700_000_000_005]),
                }
                for index in several(rng, [0, 1, _partition(rng)])
            ],
        }
    ]
    return request(
        rng.choice(CLIENTS),
        pick(rng, ["first"], ("second",), 30),
        "ListOffsets",
        pick(rng, [11, 10, 7], range(1, 12)),
        replica_id=-1,
        isolation_level=rng.choice([0, 1]),
        topics=topics,
    )


def _delete_records(rng: random.Random) -> Request:
    partitions = [
        {"partition_index": _partition(rng), "offset": rng.choice([0, 1, 2, -1, -1, 50, -2])}
        for _ in range(rng.randint(1, 2))
    ]
    topics = [{"name": _topic(rng)[0], "partitions": once(partitions, "partition_index")}]
    return request(
        rng.choice(CLIENTS), "first", "DeleteRecords", rng.choice([0, 1, 2]),
        timeout_ms=5_000, topics=topics,
    )  # fmt: skip


def _epochs(rng: random.Random) -> Request:
    partitions = [
        {
            "partition": _partition(rng),
            "current_leader_epoch": pick(rng, [-1], (0, 1)),
            "leader_epoch": rng.choice([0, 1, -1]),
        }
    ]
    topics = [{"topic": _topic(rng)[0], "partitions": partitions}]
    return request(
        rng.choice(CLIENTS), "first", "OffsetForLeaderEpoch", rng.choice([2, 3, 4]),
        replica_id=-1, topics=topics,
    )  # fmt: skip


def _init_producer(rng: random.Random) -> Request:
    client = rng.choice(CLIENTS)
    again = rng.random() < 0.2
    return request(
        client,
        "first",
        "InitProducerId",
        pick(rng, [5], range(6)),
        transactional_id=None,
        transaction_timeout_ms=60_000,
        producer_id=f"<{client}.producer_id>" if again else -1,
        producer_epoch=f"<{client}.producer_epoch>" if again else -1,
    )


def _describe_producers(rng: random.Random) -> Request:
    topics = [{"name": _topic(rng)[0], "partition_indexes": [_partition(rng)]}]
    return request(rng.choice(CLIENTS), "first", "DescribeProducers", 0, topics=topics)


NO_RETENTION: Final = {"retention.ms": "-1"}
AREA = Area(
    "log",
    (
        TopicPlan("topic1", 2, configs=NO_RETENTION),
        TopicPlan("topic2", configs=NO_RETENTION | {"cleanup.policy": "compact"}),
        TopicPlan("topic3", configs={"message.timestamp.type": "LogAppendTime"}),
        TopicPlan("topic4", configs=NO_RETENTION | {"compression.type": "lz4", "max.message.bytes": "400"}),
    ),
    {produce: 10, fetch: 8, list_offsets: 4, _delete_records: 2, _epochs: 1, _init_producer: 3, _describe_producers: 1},
)

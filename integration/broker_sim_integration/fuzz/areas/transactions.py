"""Transactions of all client versions: started, fenced, ended, with offsets of groups, and described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.areas.area import Area, pick, request, several
from broker_sim_integration.fuzz.areas.log import batch
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

CLIENTS: Final = ("a", "b")
IDS: Final = ("<txn1>", "<txn1>", "<txn2>")
TOPICS: Final = ("<topic1>", "<topic1>", "<topic2>")
GROUPS: Final = ("<group1>", "<group1>", "<group2>")


def _id(rng: random.Random, client: str) -> str:
    own = "<txn1>" if client == "a" else "<txn2>"
    return pick(rng, [own], (*IDS, "<nothing>"), 6)


def _at(transactional_id: str) -> str:
    return "coordinator <txn1>" if "txn" not in transactional_id else f"coordinator {transactional_id}"


def _producer(rng: random.Random, client: str) -> tuple[str | int, str | int]:
    own_id, own_epoch = f"<{client}.producer_id>", f"<{client}.producer_epoch>"
    other_ids: tuple[str | int, ...] = ("<a.producer_id>", 4_000_000, -1)
    other_epochs: tuple[str | int, ...] = (own_epoch[:-1] + "+1>", own_epoch[:-1] + "-1>", 0, -1)
    return pick(rng, [own_id], other_ids, 15), pick(rng, [own_epoch], other_epochs, 10)


def _init(rng: random.Random) -> Request:
    client = rng.choice(CLIENTS)
    name = _id(rng, client)
    again = rng.random() < 0.25
    producer = _producer(rng, client) if again else (-1, -1)
    return request(
        client,
        _at(name),
        "InitProducerId",
        pick(rng, [5, 4, 3], range(6)),
        transactional_id=pick(rng, [name], ("",), 25),
        transaction_timeout_ms=pick(rng, [60_000], (0, -1, 10_000_000), 20),
        producer_id=producer[0],
        producer_epoch=producer[1],
    )


def _partitions(rng: random.Random) -> list[int]:
    return several(rng, [0, 1, pick(rng, [0], (7,), 15)])


def _topics(rng: random.Random) -> list[dict[str, Any]]:
    names = several(rng, [*TOPICS, pick(rng, TOPICS, ("<nothing>",), 15)])
    return [{"name": name, "partitions": _partitions(rng)} for name in names]


def _add_partitions(rng: random.Random) -> Request:
    client = rng.choice(CLIENTS)
    name = _id(rng, client)
    producer_id, epoch = _producer(rng, client)
    version = pick(rng, [3, 3, 4, 5], range(6))
    topics = _topics(rng)
    return request(
        client,
        _at(name),
        "AddPartitionsToTxn",
        version,
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
        transactions=[
            {
                "transactional_id": name,
                "producer_id": producer_id,
                "producer_epoch": epoch,
                "verify_only": rng.random() < 0.4,
                "topics": topics,
            }
        ],
    )


def _add_offsets(rng: random.Random) -> Request:
    client = rng.choice(CLIENTS)
    name = _id(rng, client)
    producer_id, epoch = _producer(rng, client)
    return request(
        client,
        _at(name),
        "AddOffsetsToTxn",
        pick(rng, [3, 4], range(5)),
        transactional_id=name,
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=rng.choice(GROUPS),
    )


def _commit_offsets(rng: random.Random) -> Request:
    client = rng.choice(CLIENTS)
    name, group = _id(rng, client), rng.choice(GROUPS)
    producer_id, epoch = _producer(rng, client)
    topics = [
        {
            "name": topic["name"],
            "partitions": [
                {
                    "partition_index": index,
                    "committed_offset": rng.choice([0, 1, 7]),
                    "committed_leader_epoch": -1,
                    "committed_metadata": pick(rng, ["", None], ("text",)),
                }
                for index in topic["partitions"]
            ],
        }
        for topic in _topics(rng)
    ]
    return request(
        client,
        f"coordinator {group}",
        "TxnOffsetCommit",
        pick(rng, [5, 4, 3], range(6)),
        transactional_id=name,
        group_id=group,
        producer_id=producer_id,
        producer_epoch=epoch,
        generation_id_or_member_epoch=pick(rng, [-1], (0, 1), 12),
        member_id=pick(rng, [""], ("nobody",), 12),
        group_instance_id=pick(rng, [None], ("i1",), 20),
        topics=topics,
    )


def _end(rng: random.Random) -> Request:
    client = rng.choice(CLIENTS)
    name = _id(rng, client)
    producer_id, epoch = _producer(rng, client)
    return request(
        client,
        _at(name),
        "EndTxn",
        pick(rng, [5, 5, 4, 3], range(6)),
        transactional_id=name,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=rng.random() < 0.6,
    )


def _produce(rng: random.Random) -> Request:
    client = rng.choice(CLIENTS)
    name = _id(rng, client)
    topic = rng.choice(TOPICS)
    producer_id, epoch = _producer(rng, client)
    transactional = rng.random() < 0.9
    data = batch(rng, producer_id=producer_id, producer_epoch=epoch, base_sequence=rng.choice([0, 0, 1, 2, 3]))
    data.pop("damage", None)
    data["is_transactional"] = transactional
    return request(
        client,
        f"leader {topic} 0",
        "Produce",
        pick(rng, [12, 12, 11, 9], range(3, 13)),
        transactional_id=pick(rng, [name], (None,), 15),
        acks=-1,
        timeout_ms=5_000,
        topic_data=[{"name": topic, "partition_data": [{"index": 0, "records": [data]}]}],
    )


def _fetch(rng: random.Random) -> Request:
    topic = rng.choice(TOPICS)
    partitions = [
        {
            "partition": 0,
            "current_leader_epoch": -1,
            "fetch_offset": rng.choice([0, 0, 1, 2]),
            "log_start_offset": -1,
            "partition_max_bytes": 1_000_000,
        }
    ]
    return request(
        rng.choice(CLIENTS),
        f"leader {topic} 0",
        "Fetch",
        rng.choice([11, 12]),
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1_000_000,
        isolation_level=rng.choice([1, 1, 0]),
        session_id=0,
        session_epoch=-1,
        topics=[{"topic": topic, "partitions": partitions}],
    )


def _look(rng: random.Random) -> Request:
    client = rng.choice(CLIENTS)
    topic, group = rng.choice(TOPICS), rng.choice(GROUPS)
    ids = list(dict.fromkeys([rng.choice(IDS), pick(rng, IDS, ("<nothing>",))]))
    match rng.randrange(5):
        case 0:
            return request(client, _at("<txn1>"), "DescribeTransactions", 0, transactional_ids=ids)
        case 1:
            states = ("Ongoing", "CompleteCommit", "Empty", "own")
            return request(
                client,
                _at("<txn1>"),
                "ListTransactions",
                rng.choice([0, 1, 2]),
                state_filters=several(rng, states) if rng.random() < 0.4 else [],
                producer_id_filters=["<a.producer_id>"] if rng.random() < 0.3 else [],
                duration_filter=-1,
                transactional_id_pattern=None,
            )
        case 2:
            topics = [{"name": topic, "partition_indexes": [0]}]
            return request(client, f"leader {topic} 0", "DescribeProducers", 0, topics=topics)
        case 3:
            partitions = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": rng.choice([-1, -3])}]
            return request(
                client,
                f"leader {topic} 0",
                "ListOffsets",
                7,
                replica_id=-1,
                isolation_level=rng.choice([0, 1]),
                topics=[{"name": topic, "partitions": partitions}],
            )
        case _:
            return request(
                client,
                f"coordinator {group}",
                "OffsetFetch",
                rng.choice([8, 9]),
                groups=[{"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}],
                require_stable=rng.random() < 0.5,
            )


def _delete(rng: random.Random) -> Request:
    if rng.random() < 0.5:
        topics = [{"name": "<topic1>", "partitions": [{"partition_index": 0, "offset": rng.choice([-1, 1])}]}]
        return request("a", "leader <topic1> 0", "DeleteRecords", 2, timeout_ms=5_000, topics=topics)
    group = rng.choice(GROUPS)
    return request("a", f"coordinator {group}", "DeleteGroups", 2, groups_names=[group])


AREA = Area(
    "transactions",
    (TopicPlan("topic1", 2, configs={"retention.ms": "-1"}), TopicPlan("topic2", 2, configs={"retention.ms": "-1"})),
    {
        _init: 6,
        _add_partitions: 6,
        _produce: 9,
        _add_offsets: 3,
        _commit_offsets: 4,
        _end: 7,
        _fetch: 4,
        _look: 5,
        _delete: 1,
    },
)

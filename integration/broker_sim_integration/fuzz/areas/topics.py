"""Topics: created, enlarged, described, configured, deleted, by name and by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.areas.area import Area, once, pick, request, several
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

CLIENTS: Final = ("a", "b")
NAMES: Final = ("<topic1>", "<topic2>", "<topic3>")
BAD_NAMES: Final = ("", ".", "..", "a b", "<topic1>/", "x" * 250, "<topic_1>")
TIMEOUT: Final = 15_000
CONFIGS: Final = {
    "cleanup.policy": ("compact", "delete", "compact,delete", "own", "", None),
    "retention.ms": ("1000000", "-1", "-2", "x", "", None),
    "segment.bytes": ("1048576", "1000", "14", "2147483648", "1.5"),
    "min.insync.replicas": ("1", "2", "0", "-1"),
    "compression.type": ("lz4", "gzip", "producer", "own"),
    "message.timestamp.type": ("LogAppendTime", "CreateTime", "own"),
    "max.message.bytes": ("100", "0", "-1", "5.0"),
    "unclean.leader.election.enable": ("true", "false", "yes"),
    "min.cleanable.dirty.ratio": ("0.3", "1.5", "-1"),
    "own.config": ("1",),
}


def _name(rng: random.Random) -> str:
    return pick(rng, NAMES, BAD_NAMES, 10)


def _config(rng: random.Random) -> tuple[str, str | None]:
    name = rng.choice(list(CONFIGS))
    return name, rng.choice(CONFIGS[name])


def _assignment(rng: random.Random) -> list[str | int]:
    roles: list[str | int] = ["<first>", "<second>", "<third>", 9, -1]
    return several(rng, roles[:3] if rng.random() < 0.8 else roles, 3)


def _create(rng: random.Random) -> Request:
    topics = []
    for _ in range(rng.randint(1, 2)):
        by_hand = rng.random() < 0.3
        indexes = pick(rng, [[0], [0, 1]], ([1], [0, 0], [0, 2], [-1]), 5)
        assignments = [{"partition_index": index, "broker_ids": _assignment(rng)} for index in indexes]
        given = pick(rng, [(-1, -1)], ((1, -1), (-1, 1), (2, 2)), 6)
        counts = given if by_hand else (pick(rng, [1, 2, 3, -1], (0, -2)), pick(rng, [1, 2, 3, -1], (0, 4, -2)))
        configs = [_config(rng) for _ in range(rng.randint(0, 1))]
        topics.append(
            {
                "name": _name(rng),
                "num_partitions": counts[0],
                "replication_factor": counts[1],
                "assignments": assignments if by_hand else [],
                "configs": [{"name": name, "value": value} for name, value in dict(configs).items()],
            }
        )
    return request(
        rng.choice(CLIENTS),
        rng.choice(["first", "second"]),
        "CreateTopics",
        pick(rng, [7, 5], range(2, 8)),
        topics=once(topics, "name"),
        timeout_ms=TIMEOUT,
        validate_only=rng.random() < 0.15,
    )


def _delete(rng: random.Random) -> Request:
    names = list(dict.fromkeys(_name(rng) for _ in range(rng.randint(1, 2))))
    topics = []
    for name in names:
        by_id = name in NAMES and rng.random() < 0.4
        entry: dict[str, Any] = {"name": None if by_id and rng.random() < 0.9 else name}
        if by_id:
            entry["topic_id"] = f"{name[:-1]}.id>"
        topics.append(entry)
    return request(
        rng.choice(CLIENTS),
        rng.choice(["first", "second"]),
        "DeleteTopics",
        pick(rng, [6, 5], range(1, 7)),
        topics=topics,
        topic_names=names,
        timeout_ms=TIMEOUT,
    )


def _enlarge(rng: random.Random) -> Request:
    topics = []
    for _ in range(rng.randint(1, 2)):
        assignments = (
            [{"broker_ids": _assignment(rng)} for _ in range(rng.randint(0, 2))] if rng.random() < 0.3 else None
        )
        count = pick(rng, [2, 3, 4], (0, -1, 1), 5)
        topics.append({"name": _name(rng), "count": count, "assignments": assignments})
    return request(
        rng.choice(CLIENTS),
        rng.choice(["first", "second"]),
        "CreatePartitions",
        pick(rng, [3], range(4)),
        topics=once(topics, "name"),
        timeout_ms=TIMEOUT,
        validate_only=rng.random() < 0.2,
    )


def _metadata(rng: random.Random) -> Request:
    version = pick(rng, [13, 12, 9], range(4, 14))  # before 4 it creates topics, asynchronously
    topics = []
    for name in several(rng, [_name(rng), _name(rng)]):
        by_id = version >= 12 and name in NAMES and rng.random() < 0.4
        entry: dict[str, Any] = {"name": None if by_id else name}
        if by_id:
            entry["topic_id"] = f"{name[:-1]}.id>"
        topics.append(entry)
    return request(
        rng.choice(CLIENTS),
        rng.choice(["first", "second", "third"]),
        "Metadata",
        version,
        topics=topics,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=rng.random() < 0.2,
    )


def _describe(rng: random.Random) -> Request:
    return request(
        rng.choice(CLIENTS),
        rng.choice(["first", "second"]),
        "DescribeTopicPartitions",
        0,
        topics=once(({"name": _name(rng) or "<topic1>"} for _ in range(rng.randint(1, 3))), "name"),
        response_partition_limit=pick(rng, [2000, 1, 2], (0, -1)),
        cursor=pick(rng, [None], ({"topic_name": _name(rng), "partition_index": rng.choice([0, 1, 9, -1])},), 3),
    )


def _describe_configs(rng: random.Random) -> Request:
    resources = [
        {
            "resource_type": pick(rng, [2], (3, 0, 99), 15),
            "resource_name": _name(rng),
            "configuration_keys": several(rng, list(CONFIGS), 3),
        }
        for _ in range(rng.randint(1, 2))
    ]
    return request(
        rng.choice(CLIENTS),
        rng.choice(["first", "second"]),
        "DescribeConfigs",
        pick(rng, [4], range(1, 5)),
        resources=once(resources, "resource_name"),
        include_synonyms=rng.random() < 0.3,
        include_documentation=rng.random() < 0.1,
    )


def _alter_configs(rng: random.Random) -> Request:
    resources = []
    incremental = rng.random() < 0.7
    for _ in range(rng.randint(1, 2)):
        configs = []
        # Which of several bad values is reported depends on a hash map's order: only the first may be bad.
        for number in range(rng.randint(1, 2)):
            name, value = _config(rng)
            if number:
                name, value = "retention.ms", "5000000"
            config: dict[str, Any] = {"name": name, "value": value}
            if incremental:
                operation = rng.choice([0, 0, 1, 2, 3])
                config["config_operation"] = 0 if number else operation
            configs.append(config)
        resources.append({"resource_type": 2, "resource_name": _name(rng), "configs": once(configs, "name")})
    return request(
        rng.choice(CLIENTS),
        rng.choice(["first", "second"]),
        "IncrementalAlterConfigs" if incremental else "AlterConfigs",
        rng.choice([0, 1]),
        resources=once(resources, "resource_name"),
        validate_only=rng.random() < 0.15,
    )


def _elect(rng: random.Random) -> Request:
    topics = [{"topic": _name(rng), "partitions": several(rng, [0, 1, 5])}]
    return request(
        rng.choice(CLIENTS),
        "first",
        "ElectLeaders",
        rng.choice([0, 1, 2]),
        election_type=pick(rng, [0, 1], (2, -1), 15),
        topic_partitions=topics,
        timeout_ms=TIMEOUT,
    )


AREA = Area(
    "topics",
    (TopicPlan("topic1", 2),),
    {
        _create: 6,
        _delete: 3,
        _enlarge: 3,
        _metadata: 5,
        _describe: 3,
        _describe_configs: 4,
        _alter_configs: 5,
        _elect: 1,
    },
)

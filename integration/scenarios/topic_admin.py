"""Topics made, enlarged and deleted. Kafka: ReplicationControlManager, ControllerApis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.clients.admin_requests import (
    creatable,
    create,
    delete,
    enlarge,
    metadata,
    move,
    ongoing,
)
from integration.observations import Observation
from integration.scenarios.observe import described, produced
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.stage.stage import Stage

UNKNOWN_BROKER = 99
LONGEST_NAME = 249
RESULTS = ("topics",)
DELETED = ("responses",)
"""Kafka shuffles what it says of deleted topics, and gathers other results in hash maps."""


@scenario(topology="none before")
def a_new_topic_is_described_in_the_answer(stage: Stage) -> Iterator[Observation]:
    """Partitions, replication factor and all configurations in force; by every version."""
    client = stage.connect(stage.anchor)
    for version in range(2, 8):
        wanted = creatable(stage.name(f"v{version}"), 2, 3)
        reply = create(client, wanted, version=version)
        yield stage.whole(f"version {version}", reply, unordered=RESULTS)
    reply = create(client, creatable(stage.name("defaults")))
    yield stage.whole("the brokers' defaults", reply, unordered=RESULTS)


@scenario(topology="none before")
def replicas_may_be_assigned_by_hand(stage: Stage) -> Iterator[Observation]:
    """As asked; the partitions' leaders are the first replicas of each."""
    client = stage.connect(stage.anchor)
    one, two, three = stage.brokers
    name = stage.name("assigned")
    reply = create(client, creatable(name, assignments={0: [one, two], 1: [two, three]}))
    yield stage.whole("created", reply)
    stage.until_known(name)
    yield stage.whole("metadata", metadata(client, name), unordered=("partitions",))


@scenario(topology="none before")
def assignments_that_make_no_sense_are_refused(stage: Stage) -> Iterator[Observation]:
    """Gaps, duplicates, strangers, nothing, two sizes, both ways at once; and with words."""
    client = stage.connect(stage.anchor)
    one, two, three = stage.brokers
    cases = {
        "gap": creatable(stage.name("a"), assignments={0: [one], 2: [two]}),
        "not from 0": creatable(stage.name("b"), assignments={1: [one]}),
        "negative partition": creatable(stage.name("c"), assignments={-1: [one]}),
        "broker twice": creatable(stage.name("d"), assignments={0: [UNKNOWN_BROKER] * 2}),
        "unknown broker": creatable(stage.name("e"), assignments={0: [UNKNOWN_BROKER]}),
        "negative broker": creatable(stage.name("f"), assignments={0: [-1]}),
        "no replica": creatable(stage.name("g"), assignments={0: []}),
        "two sizes": creatable(stage.name("h"), assignments={0: [one], 1: [two, three]}),
        "with a count": creatable(stage.name("i"), 1, assignments={0: [one]}),
        "with a factor": creatable(stage.name("j"), -1, 1, assignments={0: [one]}),
    }
    for step, wanted in cases.items():
        yield stage.whole(step, create(client, wanted))


@scenario(topology="none before")
def impossible_sizes_are_refused(stage: Stage) -> Iterator[Observation]:
    """INVALID_PARTITIONS and INVALID_REPLICATION_FACTOR, and which comes first."""
    client = stage.connect(stage.anchor)
    for partitions, factor in ((0, 1), (-2, 1), (1, 0), (1, 4), (1, -2), (0, 0), (10_001, 1)):
        wanted = creatable(stage.name("never"), partitions, factor)
        reply = create(client, wanted, validate_only=True)
        yield stage.whole(f"{partitions} partitions, factor {factor}", reply)


@scenario(topology="none before")
def names_have_rules(stage: Stage) -> Iterator[Observation]:
    """INVALID_TOPIC_EXCEPTION for empty, dots, too long, other letters and colliding ones."""
    client = stage.connect(stage.anchor)
    longest = stage.name("n").ljust(LONGEST_NAME, "n")
    invalid = ("", ".", "..", longest + "n", "a b", "a/b", "\u00e4", "a\0b")
    for name in (*invalid, longest, "__consumer_offsets"):
        reply = create(client, creatable(name, 1, 1), validate_only=True)
        yield stage.whole(f"{name[:12]!r}, {len(name)} letters", reply)
    dotted = stage.name("col.lide")
    yield stage.whole("dotted", create(client, creatable(dotted, 1, 1)))
    collides = dotted.replace("col.lide", "col_lide")
    yield stage.whole("collides", create(client, creatable(collides, 1, 1)))


@scenario(topology="none before")
def topics_of_one_request_succeed_and_fail_alone(stage: Stage) -> Iterator[Observation]:
    """Good ones, bad ones, one that is there already and one that is named twice."""
    client = stage.connect(stage.anchor)
    there = stage.topic([stage.anchor])
    names = [stage.name(suffix) for suffix in ("good", "bad", "twice")]
    wanted = [
        creatable(names[0], 1, 1),
        creatable(names[1], 0, 1),
        creatable(there.name, 1, 1),
        creatable(names[2], 1, 1),
        creatable(names[2], 2, 1),
    ]
    for step in ("first", "again"):
        yield stage.whole(step, create(client, *wanted), unordered=RESULTS)
    yield stage.whole("no topic at all", create(client))


@scenario(topology="none before")
def validate_only_makes_nothing(stage: Stage) -> Iterator[Observation]:
    """The answer of a creation, and no topic afterwards."""
    client = stage.connect(stage.anchor)
    name = stage.name("validated")
    for version in (2, 7):
        reply = create(client, creatable(name, 2, 2), validate_only=True, version=version)
        yield stage.whole(f"version {version}", reply)
    yield stage.whole("metadata", metadata(client, name))


@scenario(topology="none before")
def configurations_of_a_new_topic_are_checked(stage: Stage) -> Iterator[Observation]:
    """Good values are in the answer; unknown keys and bad values are INVALID_CONFIG."""
    client = stage.connect(stage.anchor)
    good = {"max.message.bytes": "2000", "cleanup.policy": "compact,delete", "segment.ms": "1000"}
    reply = create(client, creatable(stage.name("good"), 1, 1, configs=good))
    yield stage.whole("good", reply)
    bad: dict[str, str | None] = {
        "no.such.key": "1",
        "max.message.bytes": "many",
        "segment.bytes": "13",
        "cleanup.policy": "shred",
        "min.insync.replicas": "0",
        "compression.type": "zip",
        "unclean.leader.election.enable": "perhaps",
        "message.timestamp.type": "Whenever",
        "retention.ms": None,
        "min.cleanable.dirty.ratio": "2",
    }
    for key, value in bad.items():
        wanted = creatable(stage.name("bad"), 1, 1, configs={key: value})
        yield stage.whole(f"{key}={value}", create(client, wanted, validate_only=True))


@scenario(topology="3 topics of 1 partition x 1 replica")
def topics_are_deleted_by_name_and_by_id(stage: Stage) -> Iterator[Observation]:
    """By every version; then they are unknown, to metadata and to another deletion."""
    client = stage.connect(stage.anchor)
    for version in (1, 4, 5, 6):
        topic = stage.topic([stage.anchor])
        yield stage.whole(f"version {version}", delete(client, topic.name, version=version))
        stage.until_unknown(topic.name)
        again = delete(client, topic.name, version=version)
        yield stage.whole(f"version {version} again", again)
    topic = stage.topic([stage.anchor])
    yield stage.whole("by id", delete(client, topic.topic_id))
    stage.until_unknown(topic.name)
    yield stage.whole("by id again", delete(client, topic.topic_id))
    reply = client.produce(topic, b"a")
    yield produced("produce by the old id", reply)


@scenario(topology="2 topics of 1 partition x 1 replica")
def deletions_that_make_no_sense_are_refused(stage: Stage) -> Iterator[Observation]:
    """Name and id at once, neither, the same one twice by name, by id and by both; nothing."""
    client = stage.connect(stage.anchor)
    one, two = (stage.topic([stage.anchor]) for _ in range(2))
    cases: dict[str, tuple[str | bytes | tuple[str, bytes] | None, ...]] = {
        "name and id": ((one.name, one.topic_id),),
        "neither": (None,),
        "name twice": (one.name, one.name),
        "id twice": (one.topic_id, one.topic_id),
        "once by name, once by id": (one.name, one.topic_id),
        "unknown name and id": ("no.such.topic", bytes(range(16))),
        "nothing": (),
        "one is unknown": (two.name, "no.such.topic"),
    }
    for step, topics in cases.items():
        reply = delete(client, *topics)
        yield stage.whole(step, reply, unordered=DELETED)
    yield stage.whole("the first is there", metadata(client, one.name))


@scenario(topology="2 topics of 1 partition x 1 replica")
def a_topic_can_be_enlarged_only(stage: Stage) -> Iterator[Observation]:
    """More partitions; as many, fewer, none and an unknown topic are refused; named twice too."""
    client = stage.connect(stage.anchor)
    topic, other = (stage.topic([stage.anchor]) for _ in range(2))
    for count in (2, 2, 1, 0, -1):
        yield stage.whole(f"to {count}", enlarge(client, (topic.name, count, None)))
    yield stage.whole("unknown topic", enlarge(client, ("no.such.topic", 3, None)))
    twice = enlarge(client, (other.name, 2, None), (other.name, 3, None), (topic.name, 3, None))
    yield stage.whole("named twice", twice, unordered=("results",))
    for version in range(4):
        reply = enlarge(client, (other.name, 5, None), validate_only=True, version=version)
        yield stage.whole(f"validated, version {version}", reply)
    stage.until_known(topic.name, 3)
    replicas = [len(found.replicas) for found in stage.describe_all(topic).values()]
    yield Observation("replicas of each", fields={"replicas": replicas})


@scenario(topology="1 partition x 2 replicas")
def new_partitions_may_be_assigned_by_hand(stage: Stage) -> Iterator[Observation]:
    """One entry per new partition, as many replicas as the others have, each a broker, once."""
    client = stage.connect(stage.anchor)
    topic = stage.topic([stage.anchor, stage.second])
    one, two, three = stage.brokers
    cases: dict[str, tuple[int, list[list[int]]]] = {
        "too few entries": (3, [[one, two]]),
        "too many entries": (2, [[one, two], [two, three]]),
        "another factor": (2, [[one]]),
        "unknown broker": (2, [[one, UNKNOWN_BROKER]]),
        "broker twice": (2, [[UNKNOWN_BROKER, UNKNOWN_BROKER]]),
        "no replicas": (2, [[]]),
        "no entries": (2, []),
        "good": (3, [[three, two], [two, one]]),
    }
    for step, (count, assignments) in cases.items():
        yield stage.whole(step, enlarge(client, (topic.name, count, assignments)))
    stage.until_known(topic.name, 3)
    yield stage.whole("metadata", metadata(client, topic.name), unordered=("partitions",))


@scenario(topology="2 partitions x 2 replicas")
def replicas_are_moved_on_demand(stage: Stage) -> Iterator[Observation]:
    """Added, moved and as before: the answers, and metadata when the move is over."""
    topic = stage.topic([stage.anchor, stage.second], partitions=2)
    stage.ask(stage.anchor).produce(topic, b"moves along")
    client = stage.connect(stage.anchor)
    one, two, three = stage.brokers
    for step, replicas in (
        ("added", [one, two, three]),
        ("moved", [one, three]),
        ("as it is", [one, three]),
    ):
        yield stage.whole(step, move(client, (topic.name, 0, replicas)))
        stage.until(lambda: not ongoing(client, topic.name), "the move is over")
        stage.until(
            lambda: stage.describe(topic).replicas == tuple(replicas),  # noqa: B023 - asked here
            "metadata tells of the move",
        )
        stage.until_isr(topic, *replicas)
        yield described(f"{step}: described", stage, topic)


@scenario(topology="1 partition x 2 replicas")
def moves_that_make_no_sense_are_refused(stage: Stage) -> Iterator[Observation]:
    """Unknown partitions and brokers, no replicas, one twice, nothing to cancel."""
    topic = stage.topic([stage.anchor, stage.second])
    client = stage.connect(stage.anchor)
    one, two, _ = stage.brokers
    cases: dict[str, tuple[str, int, list[int] | None]] = {
        "unknown topic": ("no.such.topic", 0, [one]),
        "unknown partition": (topic.name, 9, [one]),
        "unknown broker": (topic.name, 0, [one, UNKNOWN_BROKER]),
        "broker twice": (topic.name, 0, [UNKNOWN_BROKER, UNKNOWN_BROKER]),
        "negative broker": (topic.name, 0, [-1]),
        "no replicas": (topic.name, 0, []),
        "nothing to cancel": (topic.name, 0, None),
    }
    for step, wanted in cases.items():
        yield stage.whole(step, move(client, wanted))
    reply = move(client, cases["unknown topic"], (topic.name, 0, [one, two]))
    yield stage.whole("bad and good", reply, unordered=DELETED)

"""Creating, enlarging, moving and deleting topics. Kafka: ReplicationControlManager, ControllerApis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.clients.admin_requests import creatable, create, delete, enlarge, metadata, move, ongoing
from broker_sim_integration.observations import at_once
from broker_sim_integration.scenarios.helpers.observe import concluded, described, produced, whole_response
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

UNKNOWN_BROKER = 99
LONGEST_NAME = 249
RESULTS = ("topics",)
DELETED = ("responses",)
"""Kafka shuffles the results of a deletion, and collects other results in hash maps."""


@scenario(topology="none before")
def a_new_topic_is_described_in_the_answer(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Partitions, replication factor and all effective configurations, in each version."""
    client = cluster.connect(cluster.first)
    for version in range(2, 8):
        wanted = creatable(cluster.topics.name(f"v{version}"), 2, 3)
        reply = create(client, wanted, version=version)
        yield whole_response(f"version {version}", cluster, reply, unordered=RESULTS)
    reply = create(client, creatable(cluster.topics.name("defaults")))
    yield whole_response("the brokers' defaults", cluster, reply, unordered=RESULTS)


@scenario(topology="none before")
def replicas_may_be_assigned_by_hand(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Replicas are as requested; the leader of a partition is its first replica."""
    client = cluster.connect(cluster.first)
    one, two, three = cluster.brokers
    name = cluster.topics.name("assigned")
    reply = create(client, creatable(name, assignments={0: [one, two], 1: [two, three]}))
    yield whole_response("created", cluster, reply)
    cluster.wait_until.known(name)
    yield whole_response("metadata", cluster, metadata(client, name), unordered=("partitions",))


@scenario(topology="none before")
def assignments_that_make_no_sense_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Gaps, duplicates, unknown brokers, no brokers, two sizes, both ways at once; with error messages."""
    client = cluster.connect(cluster.first)
    one, two, three = cluster.brokers
    cases = {
        "gap": creatable(cluster.topics.name("a"), assignments={0: [one], 2: [two]}),
        "not from 0": creatable(cluster.topics.name("b"), assignments={1: [one]}),
        "negative partition": creatable(cluster.topics.name("c"), assignments={-1: [one]}),
        "broker twice": creatable(cluster.topics.name("d"), assignments={0: [UNKNOWN_BROKER] * 2}),
        "unknown broker": creatable(cluster.topics.name("e"), assignments={0: [UNKNOWN_BROKER]}),
        "negative broker": creatable(cluster.topics.name("f"), assignments={0: [-1]}),
        "no replica": creatable(cluster.topics.name("g"), assignments={0: []}),
        "two sizes": creatable(cluster.topics.name("h"), assignments={0: [one], 1: [two, three]}),
        "with a count": creatable(cluster.topics.name("i"), 1, assignments={0: [one]}),
        "with a factor": creatable(cluster.topics.name("j"), -1, 1, assignments={0: [one]}),
    }
    for step, wanted in cases.items():
        yield whole_response(step, cluster, create(client, wanted))


@scenario(topology="none before")
def impossible_sizes_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_PARTITIONS and INVALID_REPLICATION_FACTOR, and which of them is checked first."""
    client = cluster.connect(cluster.first)
    for partitions, factor in ((0, 1), (-2, 1), (1, 0), (1, 4), (1, -2), (0, 0), (10_001, 1)):
        wanted = creatable(cluster.topics.name("never"), partitions, factor)
        reply = create(client, wanted, validate_only=True)
        yield whole_response(f"{partitions} partitions, factor {factor}", cluster, reply)


@scenario(topology="none before")
def names_have_rules(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_TOPIC_EXCEPTION for empty names, dots, too long names, invalid characters and collisions."""
    client = cluster.connect(cluster.first)
    longest = cluster.topics.name("n").ljust(LONGEST_NAME, "n")
    invalid = ("", ".", "..", longest + "n", "a b", "a/b", "\u00e4", "a\0b")
    for name in (*invalid, longest, "__consumer_offsets"):
        reply = create(client, creatable(name, 1, 1), validate_only=True)
        yield whole_response(f"{name[:12]!r}, {len(name)} letters", cluster, reply)
    dotted = cluster.topics.name("col.lide")
    yield whole_response("dotted", cluster, create(client, creatable(dotted, 1, 1)))
    collides = dotted.replace("col.lide", "col_lide")
    yield whole_response("collides", cluster, create(client, creatable(collides, 1, 1)))


@scenario(topology="none before")
def topics_of_one_request_succeed_and_fail_alone(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Valid and invalid topics, one that exists already and one that is named twice."""
    client = cluster.connect(cluster.first)
    there = cluster.topics.create([cluster.first])
    names = [cluster.topics.name(suffix) for suffix in ("good", "bad", "twice")]
    wanted = [
        creatable(names[0], 1, 1),
        creatable(names[1], 0, 1),
        creatable(there.name, 1, 1),
        creatable(names[2], 1, 1),
        creatable(names[2], 2, 1),
    ]
    for step in ("first", "again"):
        yield whole_response(step, cluster, create(client, *wanted), unordered=RESULTS)
    yield whole_response("no topic at all", cluster, create(client))


@scenario(topology="none before")
def validate_only_makes_nothing(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The response of a creation, and no topic afterwards."""
    client = cluster.connect(cluster.first)
    name = cluster.topics.name("validated")
    for version in (2, 7):
        reply = create(client, creatable(name, 2, 2), validate_only=True, version=version)
        yield whole_response(f"version {version}", cluster, reply)
    yield whole_response("metadata", cluster, metadata(client, name))


@scenario(topology="none before")
def configurations_of_a_new_topic_are_checked(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Valid values are in the response; unknown keys and bad values get INVALID_CONFIG."""
    client = cluster.connect(cluster.first)
    good = {"max.message.bytes": "2000", "cleanup.policy": "compact,delete", "segment.ms": "1000"}
    reply = create(client, creatable(cluster.topics.name("good"), 1, 1, configs=good))
    yield whole_response("good", cluster, reply)
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
        wanted = creatable(cluster.topics.name("bad"), 1, 1, configs={key: value})
        yield whole_response(f"{key}={value}", cluster, create(client, wanted, validate_only=True))


@scenario(topology="3 topics of 1 partition x 1 replica")
def topics_are_deleted_by_name_and_by_id(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Deletion in each version; afterwards the topic is unknown to metadata and to another deletion."""
    client = cluster.connect(cluster.first)
    for version in (1, 4, 5, 6):
        topic = cluster.topics.create([cluster.first])
        yield whole_response(f"version {version}", cluster, delete(client, topic.name, version=version))
        cluster.wait_until.unknown(topic.name)
        again = delete(client, topic.name, version=version)
        yield whole_response(f"version {version} again", cluster, again)
    topic = cluster.topics.create([cluster.first])
    yield whole_response("by id", cluster, delete(client, topic.topic_id))
    cluster.wait_until.unknown(topic.name)
    yield whole_response("by id again", cluster, delete(client, topic.topic_id))
    reply = client.produce(topic, b"a")
    yield produced("produce by the old id", reply, at_once())


@scenario(topology="2 topics of 1 partition x 1 replica")
def deletions_that_make_no_sense_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Name and id together, neither, the same topic twice by name, by id and by both; no topic."""
    client = cluster.connect(cluster.first)
    one, two = (cluster.topics.create([cluster.first]) for _ in range(2))
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
        yield whole_response(step, cluster, reply, unordered=DELETED)
    yield whole_response("the first is there", cluster, metadata(client, one.name))


@scenario(topology="2 topics of 1 partition x 1 replica")
def a_topic_can_be_enlarged_only(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """More partitions succeed; the same number, fewer, none, an unknown topic and a repeated topic get errors."""
    client = cluster.connect(cluster.first)
    topic, other = (cluster.topics.create([cluster.first]) for _ in range(2))
    for count in (2, 2, 1, 0, -1):
        yield whole_response(f"to {count}", cluster, enlarge(client, (topic.name, count, None)))
    yield whole_response("unknown topic", cluster, enlarge(client, ("no.such.topic", 3, None)))
    twice = enlarge(client, (other.name, 2, None), (other.name, 3, None), (topic.name, 3, None))
    yield whole_response("named twice", cluster, twice, unordered=("results",))
    for version in range(4):
        reply = enlarge(client, (other.name, 5, None), validate_only=True, version=version)
        yield whole_response(f"validated, version {version}", cluster, reply)
    cluster.wait_until.known(topic.name, 3)
    replicas = [len(found.replicas) for found in cluster.metadata.describe_all(topic.name).values()]
    yield concluded("replicas of each", replicas=replicas)


@scenario(topology="1 partition x 2 replicas")
def new_partitions_may_be_assigned_by_hand(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """One entry per new partition, with the topic's number of replicas, each on a known broker."""
    client = cluster.connect(cluster.first)
    topic = cluster.topics.create([cluster.first, cluster.second])
    one, two, three = cluster.brokers
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
        yield whole_response(step, cluster, enlarge(client, (topic.name, count, assignments)))
    cluster.wait_until.known(topic.name, 3)
    yield whole_response("metadata", cluster, metadata(client, topic.name), unordered=("partitions",))


@scenario(topology="2 partitions x 2 replicas")
def replicas_are_moved_on_demand(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Added, moved and unchanged replicas: the responses, and metadata after the reassignment."""
    topic = cluster.topics.create([cluster.first, cluster.second], partitions=2)
    cluster.clients.ask(cluster.first).produce(topic, b"moves along")
    client = cluster.connect(cluster.first)
    one, two, three = cluster.brokers
    for step, replicas in (("added", [one, two, three]), ("moved", [one, three]), ("as it is", [one, three])):
        yield whole_response(step, cluster, move(client, (topic.name, 0, replicas)))
        cluster.wait_until(lambda: not ongoing(client, topic.name), "the move is over")
        cluster.wait_until(
            lambda: cluster.metadata.describe(topic).replicas == tuple(replicas),  # noqa: B023 - called here
            "metadata shows the move",
        )
        cluster.wait_until.isr(topic, *replicas)
        yield described(f"{step}: described", cluster, topic)


@scenario(topology="1 partition x 2 replicas")
def moves_that_make_no_sense_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown partitions and brokers, no replicas, one twice, nothing to cancel."""
    topic = cluster.topics.create([cluster.first, cluster.second])
    client = cluster.connect(cluster.first)
    one, two, _ = cluster.brokers
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
        yield whole_response(step, cluster, move(client, wanted))
    reply = move(client, cases["unknown topic"], (topic.name, 0, [one, two]))
    yield whole_response("bad and good", cluster, reply, unordered=DELETED)

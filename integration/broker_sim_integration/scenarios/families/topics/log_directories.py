"""Describing log directories. Kafka: KafkaApis.handleDescribeLogDirsRequest, ReplicaManager.describeLogDirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim_integration.scenarios.helpers.observe import seen_in
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

Request = messages.DescribeLogDirsRequest
Topics = list[Request.DescribableLogDirTopic]

VERSIONS: Final = range(1, 6)
NEWEST: Final = 5


@scenario(topology="2 partitions x 2 replicas")
def log_directories_are_described(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Sizes of replicas in each version, from a leader, a follower and a broker without replicas.

    Unknown partitions are left out, and so are topics without any. An empty list selects nothing, null selects all.
    """
    replicas = [cluster.first, cluster.second]
    topic = cluster.topics.create(assignments=[replicas, replicas[::-1]])
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.second)
    for value in (b"a", b"b" * 1_000):
        leader.produce(topic, value)
    asked = Request.DescribableLogDirTopic(topic.name, [0, 1, 7])
    for version in VERSIONS:
        reply = describe(leader, [asked], version)
        yield seen_in(f"version {version}", reply, **_told(reply, [topic.name]))
    for step, client in (("follower", follower), ("third", cluster.connect(cluster.third))):
        reply = describe(client, [asked])
        yield seen_in(step, reply, **_told(reply, [topic.name]))
    unknown = Request.DescribableLogDirTopic("no-such-topic", [0])
    questions: tuple[tuple[str, Topics | None], ...] = (
        ("one partition", [Request.DescribableLogDirTopic(topic.name, [1])]),
        ("partitions that are not there", [unknown]),
        ("a topic without partitions", [Request.DescribableLogDirTopic(topic.name, [])]),
        ("the same twice", [asked, asked]),
        ("nobody", []),
        ("everybody", None),
    )
    for step, topics in questions:
        reply = describe(leader, topics)
        yield seen_in(step, reply, **_told(reply, [topic.name]))


def describe(
    client: BrokerClient, topics: Topics | None, version: int = NEWEST
) -> Reply[messages.DescribeLogDirsResponse]:
    """Describe the log directories of these partitions, or of all with None; return the response."""
    return client.request(Request(topics), version, messages.DescribeLogDirsResponse)


def _told(reply: Reply[messages.DescribeLogDirsResponse], names: Sequence[str]) -> dict[str, Any]:
    """Return the compared values of the directories and of these topics; other topics may have remained from before."""
    answer = reply.message
    return {
        "error": answer.error_code,
        "directories": [
            {
                "error": each.error_code,
                "absolute": (each.log_dir or "").startswith("/"),
                "space": each.total_bytes >= each.usable_bytes > 0,
                "cordoned": each.is_cordoned,
            }
            for each in answer.results
        ],
        "replicas": sorted(
            [
                names.index(topic.name),
                partition.partition_index,
                partition.partition_size,
                partition.offset_lag,
                partition.is_future_key,
            ]
            for each in answer.results
            for topic in each.topics
            if topic.name in names
            for partition in topic.partitions
        ),
    }

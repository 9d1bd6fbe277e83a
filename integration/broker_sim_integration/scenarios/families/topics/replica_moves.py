"""Requests to move replicas to another log directory. Kafka: ReplicaManager.alterReplicaLogDirs, KIP-113."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.protocol import messages
from broker_sim_integration.scenarios.helpers.observe import seen_in
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

Request = messages.AlterReplicaLogDirsRequest
Entry = tuple[str, dict[str, list[int]]]
"""A directory, and the partitions by topic that are to move into it."""

VERSIONS: Final = (1, 2)
NEWEST: Final = 2
DESCRIBE_VERSION: Final = 4
NO_DIRECTORY: Final = "/no/such/directory"
LONG, TOO_LONG = "x" * 213, "x" * 214
"""With the second name, the directory name of a moving log would be too long."""


@scenario(topology="3 partitions x 1 or 2 replicas")
def replicas_stay_in_the_one_directory(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A replica that is in the requested directory already does not move; other directories do not exist.

    Each broker handles only its own replicas. If a partition is named twice, the last directory counts.
    """
    first, second, third = cluster.brokers
    topic = cluster.topics.create(assignments=[[first, second], [second, first], [second, third]])
    client = cluster.connect(first)
    here, name = _directory(client), topic.name
    for version in VERSIONS:
        reply = _alter(client, [(here, {name: [0, 1, 2, 7]})], version)
        yield _told(f"version {version}", reply, name)
        reply = _alter(client, [(NO_DIRECTORY, {name: [0, 2, 7]})], version)
        yield _told(f"version {version}, no directory", reply, name)
    questions: tuple[tuple[str, list[Entry]], ...] = (
        ("a slash behind", [(f"{here}/", {name: [0]})]),
        ("a relative path", [("data", {name: [0]})]),
        ("an empty path", [("", {name: [0]})]),
        ("here, then nowhere", [(here, {name: [0]}), (NO_DIRECTORY, {name: [0]})]),
        ("nowhere, then here", [(NO_DIRECTORY, {name: [0]}), (here, {name: [0]})]),
        ("the same twice", [(here, {name: [0, 0]}), (here, {name: [0, 1]})]),
        ("unknown topics", [(here, {"no-such-topic": [0], "a b": [0], "": [0]})]),
        ("a negative partition", [(here, {name: [-1]})]),
        ("long names", [(here, {LONG: [0], TOO_LONG: [0]})]),
        ("long numbers", [(NO_DIRECTORY, {LONG: [10], TOO_LONG: [10]})]),
        ("many", [(here, {f"n{number}": [3, 0, 2, 1, 40, 17, 5] for number in range(6)})]),
        ("nothing", []),
        ("a directory alone", [(here, {})]),
        ("a topic alone", [(here, {name: []})]),
    )
    for step, entries in questions:
        yield _told(step, _alter(client, entries), name)
    other = cluster.connect(third)
    yield _told("another broker", _alter(other, [(_directory(other), {name: [0, 2]})]), name)


def _directory(client: BrokerClient) -> str:
    request = messages.DescribeLogDirsRequest([])
    answer = client.request(request, DESCRIBE_VERSION, messages.DescribeLogDirsResponse)
    (directory,) = answer.message.results
    return directory.log_dir


def _alter(
    client: BrokerClient, entries: list[Entry], version: int = NEWEST
) -> Reply[messages.AlterReplicaLogDirsResponse]:
    request = Request(
        [
            Request.AlterReplicaLogDir(
                path, [Request.AlterReplicaLogDirTopic(name, numbers) for name, numbers in topics.items()]
            )
            for path, topics in entries
        ]
    )
    return client.request(request, version, messages.AlterReplicaLogDirsResponse)


def _told(step: str, reply: Reply[messages.AlterReplicaLogDirsResponse], name: str) -> Observation:
    """Observe topics, partitions and errors in the order of the response."""
    return seen_in(
        step,
        reply,
        results=[
            [
                "the topic" if each.topic_name == name else each.topic_name[-2:],
                *[[row.partition_index, row.error_code] for row in each.partitions],
            ]
            for each in reply.message.results
        ],
    )

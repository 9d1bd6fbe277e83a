"""The cases, each a function that returns its observations of a cluster with broker 1, to which broker 2 is added."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.records import Record, build_batch
from broker_sim_integration.case_connection import Connection, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

RECORDING: Final = Path(__file__).with_name("recorded.jsonl")
"""The observations on real brokers."""
CONFIGS: Final = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""Configurations of the brokers."""
WITHIN_S: Final = 60
TIMEOUT_MS: Final = 30_000
LATEST: Final = -1


class Machine(Protocol):
    """The actions on the brokers of a cluster, real or simulated."""

    async def add(self, broker: int) -> None:
        """Add a broker without data, and wait until it responds."""

    async def stop(self, broker: int) -> None:
        """Shut a broker down."""

    async def start(self, broker: int, *, new_port: bool = False) -> None:
        """Start a broker again with its data."""

    async def remove(self, broker: int) -> None:
        """Shut a broker down, unregister it, and drop its data."""

    def address(self, broker: int) -> tuple[str, int]:
        """Return host and port of a broker."""


class Cluster:
    """A cluster as clients see it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    async def ask(self, broker: int, request: Any, version: int) -> Any:
        """Send a request on a connection of its own; return the response."""
        connection = await Connection.open(self.machine.address(broker))
        try:
            return await connection.ask(request, version)
        finally:
            connection.close()

    async def create(self, name: str, partitions: int, replicas: int) -> list[Any]:
        """Create a topic; return error and text."""
        request = messages.CreateTopicsRequest
        topic = request.CreatableTopic(name, partitions, replicas)
        (result,) = (await self.ask(1, request([topic], TIMEOUT_MS), 7)).topics
        return [ErrorCode(result.error_code).name, result.error_message]

    async def metadata(self, broker: int, *topics: str) -> Any:
        """Return a broker's response to a Metadata request for these topics."""
        request = messages.MetadataRequest
        named = [request.MetadataRequestTopic(name=name) for name in topics]
        return await self.ask(broker, request(named, allow_auto_topic_creation=False), 12)

    async def brokers(self, broker: int, *expected: int) -> list[int]:
        """Return the ids of the brokers that a broker lists, when these are the expected ones."""

        async def look() -> list[int]:
            return sorted(each.node_id for each in (await self.metadata(broker)).brokers)

        return list(await eventually(look, lambda seen: seen == [*expected], WITHIN_S))

    async def partitions(self, broker: int, topic: str, **expected: Any) -> list[Any]:
        """Return the partitions of a topic as a broker sees them, when the first one is as expected."""

        async def look() -> list[Any]:
            (found,) = (await self.metadata(broker, topic)).topics
            return [
                {
                    "error": ErrorCode(each.error_code).name,
                    "leader": each.leader_id,
                    "epoch": each.leader_epoch,
                    "replicas": each.replica_nodes,
                    "isr": sorted(each.isr_nodes),
                    "offline": each.offline_replicas,
                }
                for each in sorted(found.partitions, key=lambda each: each.partition_index)
            ]

        def is_expected(seen: list[Any]) -> bool:
            return bool(seen) and all(seen[0][name] == value for name, value in expected.items())

        return list(await eventually(look, is_expected, WITHIN_S))

    async def reassign(self, topic: str, *replicas: int) -> list[Any]:
        """Give the only partition of a topic these replicas; return the errors."""
        request = messages.AlterPartitionReassignmentsRequest
        partition = request.ReassignablePartition(0, list(replicas))
        answer = await self.ask(1, request(TIMEOUT_MS, topics=[request.ReassignableTopic(topic, [partition])]), 0)
        (result,) = answer.responses[0].partitions
        return [ErrorCode(answer.error_code).name, ErrorCode(result.error_code).name, result.error_message]

    async def produce(self, broker: int, topic: str) -> list[Any]:
        """Append a record at a broker; return error and offset."""
        request = messages.ProduceRequest
        data = request.PartitionProduceData(0, memoryview(build_batch([Record(b"value", b"key")])))
        message = request(None, -1, TIMEOUT_MS, [request.TopicProduceData(topic, partition_data=[data])])
        result = (await self.ask(broker, message, 9)).responses[0].partition_responses[0]
        return [ErrorCode(result.error_code).name, result.base_offset]

    async def end(self, broker: int, topic: str) -> list[Any]:
        """Return error and log end offset of a topic's only partition."""
        request = messages.ListOffsetsRequest
        partition = request.ListOffsetsPartition(0, timestamp=LATEST)
        message = request(topics=[request.ListOffsetsTopic(topic, [partition])])
        result = (await self.ask(broker, message, 7)).topics[0].partitions[0]
        return [ErrorCode(result.error_code).name, result.offset]

    async def unregister(self, broker: int) -> list[Any]:
        """Unregister a broker; return error and text."""
        answer = await self.ask(1, messages.UnregisterBrokerRequest(broker), 0)
        return [ErrorCode(answer.error_code).name, answer.error_message]


async def added(cluster: Cluster) -> list[Any]:
    """Add a broker: new topics use it, existing partitions only when they are reassigned."""
    await cluster.create("kept", 1, 1)
    seen: list[Any] = [await cluster.produce(1, "kept"), await cluster.create("both", 1, 2)]
    await cluster.machine.add(2)
    seen += [
        await cluster.brokers(1, 1, 2),
        await cluster.brokers(2, 1, 2),
        await cluster.partitions(2, "kept", leader=1),
        await cluster.create("both", 1, 2),
        (await cluster.partitions(1, "both", isr=[1, 2]))[0]["isr"],
        await cluster.create("spread", 2, 1),
        sorted(each["leader"] for each in await cluster.partitions(2, "spread")),
        await cluster.reassign("kept", 2),
        await cluster.partitions(1, "kept", replicas=[2], leader=2),
        await cluster.partitions(2, "kept", replicas=[2], leader=2),
    ]
    return [*seen, await cluster.produce(1, "kept"), await cluster.produce(2, "kept"), await cluster.end(2, "kept")]


async def _with_broker_2(cluster: Cluster) -> None:
    """Add broker 2, with the partition of `alone` and the second replica of `both`."""
    wanted = {"alone": [2], "both": [1, 2]}
    for topic in wanted:
        await cluster.create(topic, 1, 1)
    await cluster.machine.add(2)
    await cluster.brokers(1, 1, 2)
    for topic, replicas in wanted.items():
        await cluster.reassign(topic, *replicas)
        await cluster.partitions(1, topic, replicas=replicas, isr=replicas, leader=replicas[0])
        await cluster.partitions(replicas[0], topic, leader=replicas[0])
        await cluster.produce(replicas[0], topic)


async def removed(cluster: Cluster) -> list[Any]:
    """Remove a broker: its replicas stay assigned, and it cannot be unregistered twice; then add it without data.

    Who leads `alone` then is not observed: it differs between runs of a real cluster.
    """
    await _with_broker_2(cluster)
    await cluster.machine.remove(2)
    seen: list[Any] = [
        await cluster.brokers(1, 1),
        await cluster.partitions(1, "alone", leader=-1),
        await cluster.partitions(1, "both", isr=[1]),
        await cluster.produce(1, "both"),
        await cluster.unregister(2),
        await cluster.create("again", 1, 2),
        await cluster.reassign("both", 1),
        await cluster.partitions(1, "both", replicas=[1]),
    ]
    await cluster.machine.add(2)
    return [
        *seen,
        await cluster.brokers(1, 1, 2),
        await cluster.create("again", 1, 2),
        (await cluster.partitions(2, "again", isr=[1, 2]))[0]["isr"],
        await cluster.partitions(1, "both"),
    ]


async def unregistered_while_down(cluster: Cluster) -> list[Any]:
    """Shut a broker down and unregister it; start it again with its data."""
    await _with_broker_2(cluster)
    await cluster.machine.stop(2)
    seen: list[Any] = [
        await cluster.brokers(1, 1),
        await cluster.partitions(1, "alone", leader=-1),
        await cluster.unregister(2),
        await cluster.partitions(1, "both", isr=[1]),
    ]
    await cluster.machine.start(2)
    return [
        *seen,
        await cluster.brokers(1, 1, 2),
        await cluster.partitions(1, "alone", leader=2),
        await cluster.end(2, "alone"),
        await cluster.partitions(1, "both", isr=[1, 2]),
    ]


async def on_another_port(cluster: Cluster) -> list[Any]:
    """Shut a broker down and start it on another port, which both brokers then return."""
    await _with_broker_2(cluster)
    former = cluster.machine.address(2)
    await cluster.machine.stop(2)
    seen: list[Any] = [await cluster.brokers(1, 1)]
    await cluster.machine.start(2, new_port=True)
    seen += [await cluster.brokers(1, 1, 2), cluster.machine.address(2) != former]
    for broker in (1, 2):
        listed = {each.node_id: (each.host, each.port) for each in (await cluster.metadata(broker)).brokers}
        described = await cluster.ask(broker, messages.DescribeClusterRequest(), 1)
        also = {each.broker_id: (each.host, each.port) for each in described.brokers}
        seen.append([each[2] == cluster.machine.address(2) for each in (listed, also)])
    return [
        *seen,
        await cluster.partitions(1, "alone", leader=2),
        await cluster.partitions(2, "alone", leader=2),
        await cluster.produce(2, "alone"),
        await cluster.partitions(1, "both", isr=[1, 2]),
    ]


TABLE: Final[dict[str, Callable[[Cluster], Awaitable[list[Any]]]]] = {
    play.__name__.replace("_", " "): play for play in (added, removed, unregistered_while_down, on_another_port)
}
"""The cases by name."""


async def play(machine: Machine, case: str) -> list[Any]:
    """Return the observations of a case."""
    return await TABLE[case](Cluster(machine))

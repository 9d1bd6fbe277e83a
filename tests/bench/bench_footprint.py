"""What a cluster of three brokers keeps in memory, and uses while nobody asks anything, by what is in it.

Each state has a cluster of its own: nothing, many topics or partitions of one replica, parked connections, producers
and groups. Memory is what the state adds to that of the empty cluster; processor time is that of some quiet seconds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from broker_connection import RETRY_S, Connection, coordinator_of
from options import Options
from peers import Peer, PeerMissingError, kafka, kfake, simulator
from report import Report

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.records import build_batch

SUITE = "footprint"
TOPIC = "footprint"
PER_TOPIC = 1_000
WAIT_MS = 300_000
TIMEOUT_MS = 60_000
AT_ONCE = 200
TOPICS_AT_ONCE = 9
"""A request may write 10 000 records, one for each topic and each partition."""
MOST_IDLE_MB = 45
MOST_PARTITION_KB = 10


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    topics: int
    partitions: int
    connections: int
    producers: int
    groups: int
    settle_s: float
    """Seconds before the processor time is measured."""
    idle_s: float


FULL = Sizes(1_000, 25_000, 2_000, 10_000, 1_000, settle_s=5.0, idle_s=10.0)
TINY = Sizes(2, 3, 2, 2, 2, settle_s=0.0, idle_s=0.1)


def run(options: Options, report: Report) -> None:
    """Measure each state once on each peer, one after the other."""
    sizes = options.choose(FULL, TINY)
    starters = [simulator, *([kfake] if options.peers else []), *([kafka] if options.kafka else [])]
    for start in starters:
        try:
            _measure(start, sizes, report)
        except PeerMissingError as missing:
            report.say(f"without {start.__name__}: {missing}")
    report.print_suite(SUITE)
    report.bar_below(SUITE, "empty, memory", MOST_IDLE_MB)
    report.bar_below(SUITE, f"{sizes.partitions} partitions, memory of each", MOST_PARTITION_KB)


def _measure(start: Callable, sizes: Sizes, report: Report) -> None:
    states: tuple[tuple[str, int, Callable[[Cluster, int], Awaitable[None]]], ...] = (
        ("topics", sizes.topics, _topics),
        ("partitions", sizes.partitions, _partitions),
        ("parked connections", sizes.connections, _connections),
        ("producer ids", sizes.producers, _producers),
        ("groups", sizes.groups, _groups),
    )
    with start() as peer:
        empty_mb = asyncio.run(_rest("empty", peer, None, sizes, report))
        report.add(SUITE, "empty, memory", "MB", peer.name, empty_mb, lower=True)
    for what, count, fill in states:
        with start() as peer:
            name = f"{count} {what}"
            full_mb = asyncio.run(_rest(name, peer, lambda cluster: fill(cluster, count), sizes, report))  # noqa: B023
        used_kb = max(full_mb - empty_mb, 0.0) * 1_024 / count
        report.add(SUITE, f"{name}, memory of each", "KB", peer.name, used_kb, lower=True)


async def _rest(
    name: str, peer: Peer, fill: Callable[["Cluster"], Awaitable[None]] | None, sizes: Sizes, report: Report
) -> float:
    """Fill the cluster, measure its processor time at rest, and return its memory in MB."""
    cluster = Cluster(peer)
    if fill is not None:
        await fill(cluster)
    await asyncio.sleep(sizes.settle_s)
    before_s = peer.cpu_s()
    await asyncio.sleep(sizes.idle_s)
    used = (peer.cpu_s() - before_s) / sizes.idle_s * 100
    report.add(SUITE, f"{name}, idle", "% of a core", peer.name, used, lower=True)
    resident_mb = peer.resident_mb()
    cluster.close()
    return resident_mb


class Cluster:
    """Connections to one peer."""

    def __init__(self, peer: Peer) -> None:
        self.servers = [
            (host, int(port)) for host, _, port in (each.rpartition(":") for each in peer.bootstrap_servers.split(","))
        ]
        self._opened: list[Connection] = []
        self._by_address: dict[tuple[str, int], Connection] = {}

    async def open(self, address: tuple[str, int]) -> Connection:
        """Return a new connection."""
        connection = await Connection.open(address)
        self._opened.append(connection)
        return connection

    async def to(self, address: tuple[str, int]) -> Connection:
        """Return the connection to that broker that all share."""
        if address not in self._by_address:
            self._by_address[address] = await self.open(address)
        return self._by_address[address]

    async def create(self, sizes: dict[str, int]) -> None:
        """Create topics with so many partitions of one replica, and wait until they have leaders."""
        answer = await self._metadata()
        address = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}[answer.controller_id]
        connection = await self.to(address)
        topic_class = messages.CreateTopicsRequest.CreatableTopic
        topics = [topic_class(name=name, num_partitions=count, replication_factor=1) for name, count in sizes.items()]
        for start in range(0, len(topics), TOPICS_AT_ONCE):
            some = topics[start : start + TOPICS_AT_ONCE]
            request = messages.CreateTopicsRequest(topics=some, timeout_ms=TIMEOUT_MS)
            for topic in (await connection.request(ApiKey.CREATE_TOPICS, request)).topics:
                assert topic.error_code == 0, topic
        while not await self.leader():  # noqa: ASYNC110 - another process, which tells nobody
            await asyncio.sleep(0.05)

    async def leader(self) -> tuple[str, int] | None:
        """Return the address of the leader of the first topic's first partition."""
        answer = await self._metadata(messages.MetadataRequest.MetadataRequestTopic(name=TOPIC))
        brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        partitions = answer.topics[0].partitions
        return brokers.get(partitions[0].leader_id) if partitions else None

    async def _metadata(self, *topics: object) -> messages.MetadataResponse:
        connection = await self.to(self.servers[0])
        answer: messages.MetadataResponse
        answer = await connection.request(ApiKey.METADATA, messages.MetadataRequest(topics=list(topics)))
        return answer

    def close(self) -> None:
        """Close all connections."""
        for connection in self._opened:
            connection.close()


async def _topics(cluster: Cluster, count: int) -> None:
    await cluster.create({TOPIC: 1} | {f"{TOPIC}-{number}": 1 for number in range(1, count)})


async def _partitions(cluster: Cluster, count: int) -> None:
    starts = range(PER_TOPIC, count, PER_TOPIC)
    more = {f"{TOPIC}-{start}": min(PER_TOPIC, count - start) for start in starts}
    await cluster.create({TOPIC: min(PER_TOPIC, count)} | more)


async def _connections(cluster: Cluster, count: int) -> None:
    """Let consumers wait for records, each on a connection of its own."""
    await cluster.create({TOPIC: 1})
    leader = await cluster.leader()
    assert leader is not None
    partition = messages.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = messages.FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])
    request = messages.FetchRequest(
        replica_id=-1, max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic]
    )
    for _ in range(count):
        answer = (await cluster.open(leader)).request(ApiKey.FETCH, request)
        answer.add_done_callback(asyncio.Future.exception)  # nobody asks for it when the connection is closed


async def _producers(cluster: Cluster, count: int) -> None:
    """Let idempotent producers write one record each."""
    await cluster.create({TOPIC: 1})
    leader = await cluster.leader()
    assert leader is not None
    connection = await cluster.to(leader)

    async def produce(producer_id: int) -> None:
        batch = build_batch([b"x"], producer_id=producer_id, producer_epoch=0, base_sequence=0)
        partition = messages.ProduceRequest.PartitionProduceData(index=0, records=batch)
        topic = messages.ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
        request = messages.ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        answer = await connection.request(ApiKey.PRODUCE, request)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer

    async def begin() -> int:
        answer = await connection.request(ApiKey.INIT_PRODUCER_ID, messages.InitProducerIdRequest())
        producer_id: int = answer.producer_id
        return producer_id

    for start in range(0, count, AT_ONCE):
        ids = await asyncio.gather(*[begin() for _ in range(start, min(start + AT_ONCE, count))])
        await asyncio.gather(*[produce(producer_id) for producer_id in ids])


async def _groups(cluster: Cluster, count: int) -> None:
    """Commit an offset for each group."""
    await cluster.create({TOPIC: 1})
    request_class = messages.OffsetCommitRequest
    partition = request_class.OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")
    topic = request_class.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    for number in range(count):
        group_id = f"group-{number}"
        request = request_class(group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=[topic])
        await _commit(cluster, request)


async def _commit(cluster: Cluster, request: messages.OffsetCommitRequest) -> None:
    """Commit, again while the coordinator has not loaded the group's partition yet."""
    while True:
        connection = await cluster.to(await coordinator_of(cluster.servers, request.group_id))
        answer = await connection.request(ApiKey.OFFSET_COMMIT, request)
        error_code = answer.topics[0].partitions[0].error_code
        if error_code == ErrorCode.NONE:
            return
        assert error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR), answer
        await asyncio.sleep(RETRY_S)

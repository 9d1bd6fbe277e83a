"""Consumer groups: joining, rebalances, idle members, commits, and long polls that must not disturb.

The simulator, kfake and the real Kafka, three brokers each, in turns; what counts is the median of the
rounds. The initial delay of a group's first rebalance is a setting and is 0 here where it can be set,
because kfake has none. Each broker has served a small group before. Members are connected before they
join, and their heartbeats are spread over the interval; because of that a rebalance is measured from when
the last member has heard of it.

Times are what members see, and depend on how busy the machine is: brokers and members share it. Beside each
stands the processor time of the brokers, and for the join how many requests the members needed: a broker that
begins a generation with those who are there already makes the others join again.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import quantiles

from broker_connection import Connection, coordinator_of
from client_work import PARTITIONS, leader_of, topic
from group_load import Group
from options import Options
from peers import KAFKA, KFAKE, Peer
from report import Report
from turns import Samples, measure_in_turns, starters

try:
    from uvloop import new_event_loop
except ImportError:
    from asyncio import new_event_loop

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.records import build_batch

SUITE = "groups"
WARM_UP_MEMBERS = 5
COMMITTERS = 8
INITIAL_DELAY = "group.initial.rebalance.delay.ms"
TIMEOUT_S = 120
UNMOVED = 1.25
"""Ratio up to which two p99 count as the same: two rounds differ by that much."""

COMMIT = f"commits by {COMMITTERS} members"
QUIET = "synchronous produce, p99"


@dataclass(frozen=True)
class Sizes:
    """How many members there are and what they do, and the names of what is measured with them."""

    members: int
    dying: int
    beat_s: float
    session_timeout_ms: int
    """A broker notices after that time that a member has died."""
    idle_members: int
    idle_beat_s: float
    idle_s: float
    commits: int
    long_polls: int
    produces: int

    @property
    def join(self) -> str:
        """Members join."""
        return f"{self.members} members join until stable"

    @property
    def rebalance(self) -> str:
        """Some of them have died."""
        return f"rebalance after {self.dying} of them die, once all know"

    @property
    def rebalance_cpu(self) -> str:
        """The brokers' part of that."""
        return f"rebalance after {self.dying} of them die: brokers' CPU"

    @property
    def idle(self) -> str:
        """Members send heartbeats."""
        return f"{self.idle_members} idle members, one core"

    @property
    def polled(self) -> str:
        """Fetches wait beside a producer."""
        return f"the same beside {self.long_polls} long polls, p99"


FULL = Sizes(
    members=500,
    dying=50,
    beat_s=0.5,
    session_timeout_ms=6_000,
    idle_members=1_000,
    idle_beat_s=3.0,
    idle_s=6.0,
    commits=3_000,
    long_polls=2_000,
    produces=400,
)
TINY = Sizes(
    members=5,
    dying=1,
    beat_s=0.1,
    # Members of a process that a busy machine stops for a moment are not lost.
    session_timeout_ms=3_000,
    idle_members=5,
    idle_beat_s=0.1,
    idle_s=0.1,
    commits=40,
    long_polls=5,
    produces=10,
)
TINY_WITH_PEERS = replace(TINY, session_timeout_ms=FULL.session_timeout_ms)
"""kfake takes no shorter session."""

Add = Callable[..., None]


def run(options: Options, report: Report) -> None:
    """Measure all peers that there are, one after the other, so that only one is running."""
    sizes = options.choose(FULL, TINY_WITH_PEERS if options.peers else TINY)
    report.say(f"{INITIAL_DELAY} is 0 for the simulator and Kafka, so no time here is that delay")
    configs = {INITIAL_DELAY: "0"}
    if options.tiny:
        configs["group.min.session.timeout.ms"] = str(sizes.session_timeout_ms)
    measured = measure_in_turns(
        starters(options, configs), options.rounds, lambda peer, samples: _round(peer, sizes, samples), report
    )
    measured.report_medians(report, SUITE)
    report.print_suite(SUITE)
    for peer_name in (KFAKE, KAFKA):
        for name in (sizes.join, f"{sizes.join}: brokers' CPU", sizes.rebalance, sizes.rebalance_cpu):
            report.bar_ratio(SUITE, name, peer_name, name, at_most=1)
        report.bar_ratio(SUITE, COMMIT, peer_name, COMMIT)
    report.bar_below(SUITE, sizes.idle, 5)
    report.bar_unmoved(SUITE, sizes.polled, QUIET, at_most=UNMOVED)


def _round(peer: Peer, sizes: Sizes, samples: Samples) -> None:
    def add(name: str, unit: str, value: float, *, lower: bool = True) -> None:
        samples.add(peer.name, name, unit, value, lower=lower)

    servers = [_address(each) for each in peer.bootstrap_servers.split(",")]
    with ExitStack() as topics:
        name, leaders = _topic(peer, topics)
        quiet, by_quiet = _topic(peer, topics)
        while not leaders.keys() & by_quiet.keys():  # kfake draws leaders
            quiet, by_quiet = _topic(peer, topics)
        leader = min(leaders.keys() & by_quiet.keys())
        for measured in (
            _warm_up(servers, sizes),
            _joining(peer, servers, sizes, add),
            _idling(peer, servers, sizes, add),
            _committing(peer, servers, name, sizes.commits, add),
            _long_polls(leader, (name, leaders[leader]), (quiet, by_quiet[leader]), sizes, add),
        ):
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(asyncio.wait_for(measured, TIMEOUT_S))


def _topic(peer: Peer, topics: ExitStack) -> tuple[str, dict[tuple[str, int], int]]:
    """Make a topic that goes with the stack; return its name and a partition of each leader."""
    name = topics.enter_context(topic(peer, 1))
    return name, {leader_of(peer, name, number): number for number in range(PARTITIONS)}


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


async def _warm_up(servers: Sequence[tuple[str, int]], sizes: Sizes) -> None:
    """Let a small group become stable, so that what a broker does only once is done."""
    group = Group(_new_group(), WARM_UP_MEMBERS, sizes.session_timeout_ms)
    await group.connect(servers, WARM_UP_MEMBERS)
    group.start(sizes.beat_s)
    await group.wait_until_stable()
    group.close()


async def _joining(peer: Peer, servers: Sequence[tuple[str, int]], sizes: Sizes, add: Add) -> None:
    """Let members join a new group, then let some of them die."""
    group = Group(_new_group(), sizes.members, sizes.session_timeout_ms)
    await group.connect(servers, sizes.members)
    before_s, start = peer.cpu_s(), time.perf_counter()
    group.start(sizes.beat_s)
    generation = await group.wait_until_stable()
    add(sizes.join, "ms", (time.perf_counter() - start) * 1e3)
    add(f"{sizes.join}: brokers' CPU", "ms", (peer.cpu_s() - before_s) * 1e3)
    add(f"{sizes.join}: requests", "per member", group.requests_sent / sizes.members)
    group.kill(sizes.dying)
    await group.wait_until_told()
    before_s = peer.cpu_s()
    await group.wait_until_stable(beyond=generation)
    add(sizes.rebalance, "ms", (time.perf_counter() - group.last_told_s) * 1e3)
    add(sizes.rebalance_cpu, "ms", (peer.cpu_s() - before_s) * 1e3)
    group.close()


async def _idling(peer: Peer, servers: Sequence[tuple[str, int]], sizes: Sizes, add: Add) -> None:
    """Let members of a stable group send nothing but heartbeats."""
    group = Group(_new_group(), sizes.idle_members, sizes.session_timeout_ms)
    await group.connect(servers, sizes.idle_members)
    group.start(sizes.idle_beat_s)
    await group.wait_until_stable()
    await asyncio.sleep(sizes.idle_beat_s)
    before_s, start = peer.cpu_s(), time.perf_counter()
    await asyncio.sleep(sizes.idle_s)
    used = (peer.cpu_s() - before_s) / (time.perf_counter() - start)
    add(sizes.idle, "% of a core", used * 100)
    group.close()


async def _committing(peer: Peer, servers: Sequence[tuple[str, int]], name: str, commits: int, add: Add) -> None:
    """Commit offsets, one after the other on each of some connections."""
    group_id = _new_group()
    address = await coordinator_of(servers, group_id)
    connections = [await Connection.open(address) for _ in range(COMMITTERS)]

    async def commit(connection: Connection, partition: int, count: int) -> None:
        request = messages.OffsetCommitRequest
        for offset in range(count):
            parts = [request.OffsetCommitRequestPartition(partition, offset, -1, "")]
            topics = [request.OffsetCommitRequestTopic(name, partitions=parts)]
            answer = await connection.request(ApiKey.OFFSET_COMMIT, request(group_id, -1, "", topics=topics))
            assert answer.topics[0].partitions[0].error_code == 0, answer

    async def commit_all(count: int) -> None:
        await asyncio.gather(*(commit(each, index % PARTITIONS, count) for index, each in enumerate(connections)))

    await commit_all(20)
    before_s, start = peer.cpu_s(), time.perf_counter()
    await commit_all(commits // COMMITTERS)
    add(COMMIT, "commits/s", commits / (time.perf_counter() - start), lower=False)
    add(f"{COMMIT}: brokers' CPU", "us/commit", (peer.cpu_s() - before_s) * 1e6 / commits)
    for connection in connections:
        connection.close()


async def _long_polls(
    leader: tuple[str, int], busy: tuple[str, int], quiet: tuple[str, int], sizes: Sizes, add: Add
) -> None:
    """Produce one record after the other, without and with many fetches that wait.

    They wait for a partition of the same broker that nobody writes to.
    """
    producer = await Connection.open(leader)
    await _produce(producer, *busy, 50)
    add(QUIET, "ms", quantiles(await _produce(producer, *busy, sizes.produces), n=100)[98])
    pollers = [await Connection.open(leader) for _ in range(sizes.long_polls)]
    request = messages.FetchRequest
    partition = request.FetchPartition(quiet[1], -1, 0, -1, -1, 1_000_000)
    parked = [
        poller.request(
            ApiKey.FETCH,
            request(
                replica_id=-1,
                max_wait_ms=TIMEOUT_S * 1000,
                min_bytes=1,
                max_bytes=1_000_000,
                session_epoch=-1,
                topics=[request.FetchTopic(quiet[0], partitions=[partition])],
            ),
        )
        for poller in pollers
    ]
    await _produce(producer, *busy, 50)
    add(sizes.polled, "ms", quantiles(await _produce(producer, *busy, sizes.produces), n=100)[98])
    assert not any(each.done() for each in parked), "a fetch that should wait was answered"
    for connection in (producer, *pollers):
        connection.close()
    await asyncio.gather(*parked, return_exceptions=True)


async def _produce(connection: Connection, name: str, number: int, count: int) -> list[float]:
    request = messages.ProduceRequest
    batch = build_batch([b"x" * 100])
    latencies_ms = []
    for _ in range(count):
        partition = request.PartitionProduceData(number, batch)
        topics = [request.TopicProduceData(name, partition_data=[partition])]
        start = time.perf_counter()
        answer = await connection.request(ApiKey.PRODUCE, request(None, -1, 30_000, topics))
        latencies_ms.append((time.perf_counter() - start) * 1e3)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
    return latencies_ms


def _new_group() -> str:
    return f"bench-{uuid.uuid4().hex[:8]}"

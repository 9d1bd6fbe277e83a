"""Share groups: one member fetches and acknowledges, beside a consumer that reads the same partition.

The simulator, kfake and the real Kafka, three brokers each, in turns; what counts is the median of the rounds. A member
has one connection and one request in flight, and no client library. kfake keeps no state of share groups on a log, so
only Kafka is asked of: there each acknowledgement is appended and replicated, as here.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker_connection import NONE, Connection
from client_work import leader_of, topic
from options import Options
from peers import KAFKA, Peer
from report import Report
from share_load import CONFIGS, FETCH_BYTES, MOST_LOCKS, WAIT_MS, Address, ShareMember, accept, accept_and_reject, count
from turns import Samples, measure_in_turns, starters

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.records import build_batch

SUITE = "share"
TIMEOUT_S = 300
VALUE = b"x" * 100
BATCH = 100
"""Records of a batch in the log."""
MANY = 500
"""Records of a fetch, which is the default of Kafka's consumer."""
IN_FLIGHT_GROUPS = 10

BATCHES = f"fetches of {MANY} records, accepted together"
EACH = f"fetches of {MANY} records, each with a fate of its own"
SINGLE = "fetches of a batch of one record"
LIMITED = f"fetches of one record of a batch of {BATCH}"
PLAIN = f"a consumer's fetches of {MANY} records"
PLAIN_SINGLE = "a consumer's fetches of a batch of one record"


@dataclass(frozen=True)
class Sizes:
    """How many records there are, and how many of them are fetched one by one."""

    records: int
    single: int
    locks: int


FULL = Sizes(records=100_000, single=3_000, locks=MOST_LOCKS)
TINY = Sizes(records=2_000, single=10, locks=2 * MANY)

Add = Callable[..., None]


@dataclass(frozen=True)
class Place:
    """Partition 0 of a topic, and a connection to its leader."""

    servers: Sequence[Address]
    topic: str
    topic_id: bytes
    address: Address
    leader: Connection

    async def member(self) -> ShareMember:
        """Return a member of a new group."""
        member = ShareMember(self.topic_id, 0, await Connection.open(self.address))
        await member.join(self.servers, self.topic)
        return member

    async def produce(self, values: list[bytes], batches: int) -> None:
        """Append as many equal batches."""
        request = messages.ProduceRequest
        for _ in range(batches):
            topics = [
                request.TopicProduceData(
                    self.topic, partition_data=[request.PartitionProduceData(0, build_batch(values))]
                )
            ]
            answer = await self.leader.request(ApiKey.PRODUCE, request(None, 1, 30_000, topics))
            assert answer.responses[0].partition_responses[0].error_code == NONE, answer


def run(options: Options, report: Report) -> None:
    """Measure all peers that there are, one after the other, so that only one is running."""
    sizes = options.choose(FULL, TINY)
    measured = measure_in_turns(
        starters(options, CONFIGS), options.rounds, lambda peer, samples: _round(peer, sizes, samples), report
    )
    measured.report_medians(report, SUITE)
    report.print_suite(SUITE)
    for name in (BATCHES, EACH, SINGLE, LIMITED):
        cpu = _cpu(name)
        report.bar_ratio(SUITE, cpu, KAFKA, cpu, at_most=1)


def _round(peer: Peer, sizes: Sizes, samples: Samples) -> None:
    def add(name: str, unit: str, value: float, *, lower: bool = False) -> None:
        samples.add(peer.name, name, unit, value, lower=lower)

    with topic(peer, 1) as batched, topic(peer, 1) as single:
        asyncio.run(asyncio.wait_for(_measure(peer, batched, single, sizes, add), TIMEOUT_S))


async def _measure(peer: Peer, batched: str, single: str, sizes: Sizes, add: Add) -> None:
    many, one = await _place(peer, batched), await _place(peer, single)
    await many.produce([VALUE] * BATCH, sizes.records // BATCH)
    await one.produce([VALUE], sizes.single)
    for name, place, records, per_fetch, acknowledge, is_limit in (
        (BATCHES, many, sizes.records, MANY, accept, False),
        (EACH, many, sizes.records // 2, MANY, accept_and_reject, False),
        (SINGLE, one, sizes.single, 1, accept, False),
        (LIMITED, many, sizes.single, 1, accept, True),
    ):
        member = await place.member()
        acquired = await member.first_fetch(per_fetch, is_limit=is_limit)
        fetches, cpu_s, start = member.fetches, peer.cpu_s(), time.perf_counter()
        left = records - count(acquired)
        while left > 0:
            acquired = await member.fetch(acknowledge(acquired), per_fetch, is_limit=is_limit)
            left -= count(acquired)
        member.close()
        _add_rate(add, name, member.fetches - fetches, time.perf_counter() - start, peer.cpu_s() - cpu_s)
    for name, place, records, per_fetch in ((PLAIN, many, sizes.records, MANY), (PLAIN_SINGLE, one, sizes.single, 1)):
        cpu_s, start = peer.cpu_s(), time.perf_counter()
        for offset in range(0, records, per_fetch):
            await _fetch(place, offset, per_fetch)
        _add_rate(add, name, records // per_fetch, time.perf_counter() - start, peer.cpu_s() - cpu_s)
    for name, is_limit in (("in flight by batches", False), ("in flight one by one", True)):
        await _hold(peer, many, sizes, name, is_limit, add)
    for place in (many, one):
        place.leader.close()


def _cpu(name: str) -> str:
    return f"{name}: brokers' CPU"


def _add_rate(add: Add, name: str, fetches: int, elapsed_s: float, cpu_s: float) -> None:
    add(name, "per second", fetches / elapsed_s)
    add(_cpu(name), "µs", cpu_s / fetches * 1e6, lower=True)


async def _hold(peer: Peer, place: Place, sizes: Sizes, name: str, is_limit: bool, add: Add) -> None:
    """Let groups have as many records in flight as they may, and look at the memory."""
    before_mb, records, members = peer.resident_mb(), 0, []
    for _ in range(IN_FLIGHT_GROUPS):
        member = await place.member()
        # An odd number splits batches, so that each of their records has a state of its own.
        per_fetch = MANY - 1 if is_limit else MANY
        held = more = count(await member.first_fetch(per_fetch, is_limit=is_limit))
        while more and held < sizes.locks - MANY:  # kfake allows fewer
            more = count(await member.fetch([], per_fetch, is_limit=is_limit, wait_ms=0))
            held += more
        records += held
        members.append(member)
    grown = max(peer.resident_mb() - before_mb, 0) * 1024 * 1024
    add(f"a record {name}: memory", "bytes", grown / records, lower=True)
    for member in members:
        member.close()


async def _fetch(place: Place, offset: int, records: int) -> None:
    """Fetch as a consumer does, about as many records."""
    request = messages.FetchRequest
    most = 1 if records == 1 else records * len(VALUE)
    partition = request.FetchPartition(0, -1, offset, -1, -1, most)
    answer = await place.leader.request(
        ApiKey.FETCH,
        request(
            replica_id=-1,
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            session_epoch=-1,
            topics=[request.FetchTopic(place.topic, partitions=[partition])],
        ),
    )
    assert answer.responses[0].partitions[0].records, answer


async def _place(peer: Peer, name: str) -> Place:
    """Return partition 0 of a topic."""
    address = leader_of(peer, name, 0)
    leader = await Connection.open(address)
    request = messages.MetadataRequest
    found = await leader.request(ApiKey.METADATA, request([request.MetadataRequestTopic(name=name)], False))
    servers = [(host, int(port)) for host, _, port in _parts(peer.bootstrap_servers)]
    return Place(servers, name, found.topics[0].topic_id, address, leader)


def _parts(servers: str) -> list[tuple[str, str, str]]:
    return [each.rpartition(":") for each in servers.split(",")]

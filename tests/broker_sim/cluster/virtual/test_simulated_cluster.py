"""A cluster on a virtual loop: its trace follows from the seed, and its invariants are checked."""

import asyncio
import struct
from contextlib import closing, suppress

import pytest

from broker_sim.cluster.virtual.invariants import InvariantViolationError
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.protocol.headers import RequestHeader, encode_request
from broker_sim.protocol.messages import ApiVersionsRequest
from broker_sim.runtime.virtual import VirtualEventLoop


def run(seed=1, *, breaks_invariant=False, **options):
    """Run a cluster for ten virtual seconds; returns the lines and the digest of its trace."""
    loop = VirtualEventLoop(seed)

    async def live():
        async with SimulatedCluster(loop, 3, **options) as cluster:
            await cluster.create_topic("orders", 1, 3)
            if breaks_invariant:
                leader = cluster.nodes.brokers[cluster.leader("orders")]
                (partition,) = leader.replica_manager.partitions.values()
                partition.log.offsets.high_watermark = 5
            await asyncio.sleep(10)

    task = loop.create_task(live())
    try:
        loop.run_until_complete(task)
        return list(loop.trace.recent), loop.trace.digest()
    finally:
        loop.after_step = None
        task.cancel()
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.close()


def test_trace_follows_from_the_seed_of_the_loop():
    _, digest = run(1)
    assert run(1)[1] == digest
    assert run(2)[1] != digest


def test_trace_has_the_steps_of_delayed_operations():
    recent, _ = run()
    assert any("Fetch" in line and "parked" in line for line in recent)
    assert any("Fetch" in line and "expired" in line for line in recent)


def test_broken_invariant_ends_the_run():
    with pytest.raises(InvariantViolationError, match="offsets out of order"):
        run(breaks_invariant=True)


def test_invariants_are_not_checked_when_switched_off():
    run(breaks_invariant=True, check_invariants=False)


def test_one_of_two_clients_is_cut_off_by_its_host():
    loop = VirtualEventLoop(1)
    cluster = SimulatedCluster(loop, 1, topics=["orders"])
    heard = {"billing-1": [], "billing-2": []}

    async def ask(name):
        reader, writer = await asyncio.open_connection(*cluster.address(1))
        request = b"".join(encode_request(RequestHeader(18, 0, 1, name), ApiVersionsRequest()))
        with closing(writer), suppress(EOFError):
            while True:
                writer.write(request)
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(size)
                heard[name].append(loop.time())
                await asyncio.sleep(1)

    async def live():
        async with cluster:
            hosts = {name: cluster.client_host(name) for name in heard}
            tasks = []
            for name, host in hosts.items():
                with host:
                    tasks.append(asyncio.create_task(ask(name)))
            await asyncio.sleep(2.5)
            hosts["billing-1"].disconnect()
            await asyncio.sleep(5)
            assert {name: len(times) for name, times in heard.items()} == {"billing-1": 3, "billing-2": 8}
            hosts["billing-1"].reconnect()
            await asyncio.sleep(0.1)
            assert len(heard["billing-1"]) == 4
        await asyncio.gather(*tasks)

    asyncio.Runner(loop_factory=lambda: loop).run(live())


def test_latency_function_is_called_for_every_link():
    links = set()

    def latency_ms(source, target):
        links.add((source, target))
        return 30

    run(latency_ms=latency_ms)
    assert {(-1, 1), (1, -1), (1, 2), (2, 1)} & links == {(-1, 1), (1, -1), (1, 2), (2, 1)}

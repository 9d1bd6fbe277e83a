"""A cluster on a virtual loop: its trace follows from the seed, and its invariants are checked."""

import asyncio
from contextlib import suppress

import pytest

from broker_sim.cluster.invariants import InvariantViolationError
from broker_sim.cluster.simulated_cluster import SimulatedCluster
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
                partition.log.high_watermark = 5
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


def test_latency_is_asked_for_every_link():
    links = set()

    def latency_ms(source, target):
        links.add((source, target))
        return 30

    run(latency_ms=latency_ms)
    assert {(-1, 1), (1, -1), (1, 2), (2, 1)} & links == {(-1, 1), (1, -1), (1, 2), (2, 1)}

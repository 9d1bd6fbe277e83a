"""What the options of a test change in its run."""

import asyncio
from contextlib import closing

import pytest

from broker_sim.cluster.virtual.invariants import InvariantViolationError
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.virtual import VirtualTimeLimitError
from broker_sim.testing.options import VirtualTimeOptions
from broker_sim.testing.seeded_run import SeededRun


def run(test, seed=0, **options):
    """Run `test(kafka)` and return what it returns."""
    with closing(SeededRun(VirtualTimeOptions(**options), seed)) as this:
        cluster = this.open_cluster()
        result = this.wait(test(cluster))
        this.close_cluster()
    return result


@pytest.mark.parametrize("latency_ms", [0, 7, (7, 7)])
def test_latency_holds_for_clients_and_between_brokers(latency_ms):
    async def times(kafka):
        loop = asyncio.get_running_loop()
        start = loop.time()
        _, writer = await asyncio.open_connection(*kafka.address(1))
        connected = loop.time()
        await kafka.create_topic("orders", replication_factor=3)
        created = loop.time()
        writer.close()
        return connected - start, created - connected

    connecting_s, creating_s = run(times, latency_ms=latency_ms)
    one_way_s = 0.007 if latency_ms else 0
    assert connecting_s == pytest.approx(2 * one_way_s)
    assert creating_s == pytest.approx(one_way_s, abs=0.001)


def test_latency_that_may_be_0_holds_between_brokers():
    async def time(kafka):
        loop = asyncio.get_running_loop()
        start = loop.time()
        await kafka.create_topic("orders", replication_factor=3)
        return loop.time() - start

    assert 0.01 < run(time, latency_ms=(0, 1_000)) < 1.001


def test_drawn_latency_follows_from_the_seed():
    async def trace(kafka):
        await kafka.create_topic("orders", replication_factor=3)
        await asyncio.sleep(5)
        return asyncio.get_running_loop().trace.digest()

    digests = [run(trace, seed, latency_ms=(0.1, 5)) for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


def test_seeded_order_differs_between_seeds_and_fifo_does_not():
    async def order(_):
        ran = []

        async def note(number):
            ran.append(number)

        await asyncio.gather(*map(note, range(6)))
        return tuple(ran)

    assert {run(order, seed) for seed in range(5)} == {tuple(range(6))}
    assert len({run(order, seed, order="seeded") for seed in range(5)}) > 1


def test_cluster_is_as_the_options_say():
    async def look(kafka):
        topic = await kafka.create_topic("orders")
        limits = [broker.config.replica_lag_time_max_ms for broker in kafka.nodes.brokers.values()]
        return len(topic.partitions), limits

    configs = {"num.partitions": 4, "replica.lag.time.max.ms": 20_000}
    special = {2: {"replica.lag.time.max.ms": 15_000}}
    partitions, limits = run(look, brokers=2, configs=configs, broker_configs=special)
    assert partitions == 4
    assert limits == [20_000, 15_000]


@pytest.mark.parametrize("is_checked", [True, False])
def test_violated_invariant_fails_the_test_unless_not_checked(is_checked):
    async def break_it(kafka):
        await kafka.create_topic("orders", replication_factor=3)
        partition = TopicPartition("orders", 0)
        log = kafka.nodes.brokers[1].replica_manager.partitions[partition].log
        log.update_high_watermark(0)
        log.high_watermark = 1  # of an empty log
        await asyncio.sleep(0.001)

    if is_checked:
        with pytest.raises(InvariantViolationError, match="offsets out of order on broker 1"):
            run(break_it)
    else:
        run(break_it, check_invariants=False)


def test_limit_on_virtual_time_ends_the_run():
    with pytest.raises(VirtualTimeLimitError, match="more than the allowed 30"):
        run(lambda _: asyncio.sleep(31), limit_s=30)

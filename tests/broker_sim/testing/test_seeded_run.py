"""What the options of a test change in its run."""

import asyncio
import contextlib
import re
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


def test_cluster_has_the_configured_options():
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
        log.offsets.update_high_watermark(0)
        log.offsets.high_watermark = 1  # of an empty log
        await asyncio.sleep(0.001)

    if is_checked:
        with pytest.raises(InvariantViolationError, match="offsets out of order on broker 1"):
            run(break_it)
    else:
        run(break_it, check_invariants=False)


def test_limit_on_virtual_time_ends_the_run():
    with pytest.raises(VirtualTimeLimitError, match="more than the allowed 30"):
        run(lambda _: asyncio.sleep(31), limit_s=30)


@pytest.mark.parametrize("fails", [False, True])
def test_deviations_of_the_shutdown_are_not_those_of_the_test(fails):
    counted = []

    async def meet():
        await asyncio.gather(*[asyncio.sleep(1) for _ in range(30)])

    async def test():
        await meet()
        counted.append(len(this.loop.task_order.deviations))
        assert not fails

    this = SeededRun(VirtualTimeOptions(order="seeded"), 1)
    with closing(this):
        try:
            this.wait_for_test(test())
        except AssertionError:
            assert fails
        this.wait(meet())
        assert len(this.loop.task_order.deviations) > len(this.deviations)
        assert len(this.deviations) == counted[0] > 0


def test_deviations_of_a_failing_shutdown_count():
    async def test(): ...

    async def shut_down():
        await asyncio.gather(*[asyncio.sleep(1) for _ in range(30)])
        raise LookupError

    with closing(SeededRun(VirtualTimeOptions(order="seeded"), 1)) as this:
        this.wait_for_test(test())
        assert not this.deviations
        with pytest.raises(LookupError):
            this.wait(shut_down())
        assert this.deviations


# -- a test that fails and does not end -----------------------------------------------------------


async def hang():
    while True:  # noqa: ASYNC110 - as a client that tries again for ever
        await asyncio.sleep(1)


async def fails_and_hangs(error, cause=None):
    await asyncio.sleep(5)
    try:
        raise error from cause
    finally:
        await hang()


@pytest.mark.parametrize("kind", [AssertionError, KeyError, pytest.fail.Exception])
def test_error_of_a_test_whose_end_hangs_is_reported_after_ten_minutes(kind):
    error, cause = kind("mine"), OSError("its cause")
    with closing(SeededRun(VirtualTimeOptions(), 0)) as this:
        with pytest.raises(kind) as told:
            this.wait_for_test(fails_and_hangs(error, cause))
        assert this.loop.time() == 605
    assert told.value is error
    assert error.__cause__ is cause
    assert re.search(
        r"and then the test did not end: more than the allowed 600\.0 s pass at the end of the run, "
        r"at 605\.0 s .*where it waits:\n .*\(hang\)",
        error.__notes__[0],
    )


def test_shorter_limit_holds_at_the_end_too():
    with closing(SeededRun(VirtualTimeOptions(limit_s=30), 0)) as this:
        with pytest.raises(AssertionError):
            this.wait_for_test(fails_and_hangs(AssertionError()))
        assert this.loop.time() == 30


def test_report_of_a_timeout_names_a_hanging_end():
    async def test():
        async with asyncio.timeout(5):
            try:
                await asyncio.Event().wait()
            finally:
                await hang()

    with closing(SeededRun(VirtualTimeOptions(), 0)) as this:
        with pytest.raises(VirtualTimeLimitError, match=r"allowed 600\.0 s.* at 605\.0 s") as told:
            this.wait_for_test(test())
        assert "the test handles CancelledError()" in told.value.__notes__


def test_test_that_takes_its_error_may_take_hours():
    async def fail():
        try:
            await asyncio.sleep(1)
            raise LookupError
        finally:
            await asyncio.sleep(60)

    async def test():
        for _ in range(3):
            try:
                await fail()
            except LookupError:
                await asyncio.sleep(3_600)
        with contextlib.suppress(LookupError):
            await fail()

    with closing(SeededRun(VirtualTimeOptions(), 0)) as this:
        this.wait_for_test(test())
        this.wait(asyncio.sleep(3_600))  # as a fixture of it may
        assert this.loop.time() == 3 * 3_661 + 61 + 3_600


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_closed_after_a_failure_has_ten_minutes(fails):
    async def test():
        await asyncio.sleep(1)
        assert not fails

    with closing(SeededRun(VirtualTimeOptions(limit_s=2_000), 0)) as this:
        with pytest.raises(AssertionError) if fails else contextlib.nullcontext():
            this.wait_for_test(test())
        with pytest.raises(VirtualTimeLimitError):
            this.wait(hang())
        assert this.loop.time() == (601 if fails else 2_000)

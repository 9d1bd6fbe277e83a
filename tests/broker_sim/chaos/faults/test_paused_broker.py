"""A paused broker does nothing, its timers neither; when it goes on, all that is over expires at once.

Each test runs twice: on real sockets in real time, and in virtual time.
"""

import asyncio
import time

import pytest

from broker_sim.cluster.async_cluster import AsyncCluster
from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.protocol.records import build_batch
from broker_sim.runtime.scheduler import new_event_loop

FETCH_VERSION = 12
PATIENCE_S = 60
LONG_MS = 3_000_000
CONFIGS = {
    # A pause on a busy machine must not become a fencing, nor a smaller ISR.
    "broker.session.timeout.ms": 600_000,
    "replica.lag.time.max.ms": 600_000,
    "producer.purgatory.purge.interval.requests": 10,
    "fetch.purgatory.purge.interval.requests": 10,
}


class Request:
    """A request on a connection of its own; `answer` is the whole response, once it is there."""

    def __init__(self, runner, address, message, version):
        self.answer = None
        header = RequestHeader(message.API_KEY, version, 7, "test")
        frame = b"".join(encode_request(header, message))
        self._reading = runner.get_loop().create_task(self._ask(address, frame, header))

    async def _ask(self, address, frame, header):
        reader, writer = await asyncio.open_connection(*address)
        try:
            writer.write(frame)
            size = int.from_bytes(await reader.readexactly(4))
            answer = await reader.readexactly(size)
        finally:
            writer.close()
        _, self.answer = decode_response(header.api_key, header.api_version, answer)

    def cancel(self):
        self._reading.cancel()


class RealTime:
    """A cluster on sockets, whose loop runs only while the test waits."""

    def __init__(self, runner):
        self._runner = runner
        self._requests = []
        self.cluster = AsyncCluster(configs=CONFIGS)

    def wait_for(self, coroutine):
        return self._runner.run(coroutine)

    def send(self, broker_id, message, version):
        request = Request(self._runner, self.cluster.address(broker_id), message, version)
        self._requests.append(request)
        return request

    def until(self, condition):
        end_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end_s, "not reached"
            self.let_pass(1)

    def let_pass(self, ms):
        self.wait_for(asyncio.sleep(ms / 1_000))

    def close(self):
        for request in self._requests:
            request.cancel()
        self.wait_for(self.cluster.close())


class VirtualTime:
    """The same in virtual time."""

    def __init__(self):
        self._cluster = VirtualCluster(seed=3, configs=CONFIGS)
        self.cluster = self._cluster.inside
        self.wait_for = self._cluster.wait_for
        self.until = self._cluster.run_until
        self.let_pass = self._cluster.advance

    def send(self, broker_id, message, version):
        return self._cluster.client().send(broker_id, message, version)


@pytest.fixture(params=[pytest.param("real", marks=pytest.mark.threads), "virtual"])
def world(request):
    """Yield a cluster whose broker 1 leads all; its only follower, of `topic`, is paused."""
    if request.param == "virtual":
        made = VirtualTime()
        prepare(made)
        yield made
        return
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        made = RealTime(runner)
        made.wait_for(made.cluster.open())
        try:
            prepare(made)
            yield made
        finally:
            made.close()


def prepare(world):
    for topic, assignments in (("topic", {0: [1, 3]}), ("alone", {0: [1], 1: [1]})):
        world.wait_for(world.cluster.create_topic(topic, assignments=assignments))
    world.cluster.pause(3)
    world.until(lambda: not parked(world, "Fetch"))  # the follower's last one


def answer(world, request):
    world.until(lambda: is_answered(request))
    return request.answer if isinstance(request, Request) else request.response


def is_answered(request):
    return request.answer is not None if isinstance(request, Request) else request.done


def produce(timeout_ms):
    return produce_request(("topic", 0), timeout_ms=timeout_ms), PRODUCE_VERSION


def fetch(max_wait_ms):
    request = fetch_request(("alone", 0), ("alone", 1), max_wait_ms=max_wait_ms)
    return request, FETCH_VERSION


def append():
    return produce_request(("alone", 0), acks=1), PRODUCE_VERSION


@pytest.fixture
def park_and_pause(world, make_frame_client):
    """Park requests at broker 1 and pause it before any time can pass; returns their responses."""

    async def park(requests):
        client = make_frame_client(world.cluster.nodes.brokers[1].dispatcher.handle_frame)
        responses = [client.send(*request) for request in requests]
        world.cluster.pause(1)
        return responses

    return lambda *requests: world.wait_for(park(requests))


def error_of(response):
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def size_of(response):
    return len(response.responses[0].partitions[0].records or b"")


def parked(world, purgatory):
    return [one.delay_ms for one in world.cluster.purgatory().of(1, purgatory).parked]


def wait_until_parked(world, count):
    """Wait until so many fetches are parked at broker 1."""
    world.until(lambda: len(parked(world, "Fetch")) == count)


def test_what_is_parked_stays_while_paused_and_expires_when_the_broker_goes_on(world, park_and_pause):
    responses = park_and_pause(produce(70), produce(60), fetch(50))
    before = world.cluster.purgatory()
    world.let_pass(200)
    after = world.cluster.purgatory()
    for purgatory in ("Produce", "Fetch"):
        then, now = before.of(1, purgatory), after.of(1, purgatory)
        assert (now.num_delayed, now.watched, now.expired, now.completed) == (
            then.num_delayed, then.watched, then.expired, then.completed)  # fmt: skip
        assert [one.time_left_ms for one in now.parked] == [0] * then.num_delayed
        assert {one.operation_id for one in now.parked} == {one.operation_id for one in then.parked}
    assert responses == [[], [], []]
    world.cluster.resume(1)
    (late,), (soon,), (nothing,) = responses
    assert error_of(late) is error_of(soon) is ErrorCode.REQUEST_TIMED_OUT
    assert size_of(nothing) == 0
    assert parked(world, "Produce") == parked(world, "Fetch") == []


def test_what_is_not_over_when_the_broker_goes_on_waits_for_its_own_time(world, park_and_pause):
    over, not_over = park_and_pause(fetch(40), fetch(LONG_MS))
    world.let_pass(100)
    world.cluster.resume(1)
    assert [size_of(response) for response in over] == [0]
    assert parked(world, "Fetch") == [LONG_MS]
    assert not_over == []


def test_timer_of_a_broker_that_was_paused_goes_on_with_it(world, park_and_pause):
    over, next_one = park_and_pause(fetch(40), fetch(400))
    world.let_pass(100)
    world.cluster.resume(1)
    world.until(lambda: over and next_one)
    assert [size_of(response) for response in next_one] == [0]


def test_wake_up_that_comes_while_paused_counts_when_the_broker_goes_on(world):
    waiting = world.send(1, *fetch(LONG_MS))
    wait_until_parked(world, 1)
    world.cluster.pause(1)
    waker = world.send(1, *append())
    world.let_pass(100)
    assert parked(world, "Fetch") == [LONG_MS]
    assert not is_answered(waker)
    world.cluster.resume(1)
    assert error_of(answer(world, waker)) is ErrorCode.NONE
    assert size_of(answer(world, waiting)) > 0


def complete_twelve_fetches(world):
    """Let one event complete them: each stays watched under its other key until a purge."""
    waiting = [world.send(1, *fetch(LONG_MS)) for _ in range(12)]
    wait_until_parked(world, 12)
    broker = world.cluster.nodes.brokers[1]
    before = broker.purgatories.fetch.watched()
    broker.append_own(TopicPartition("alone", 0), build_batch([b"wakes them"]))
    assert broker.purgatories.fetch.watched() == before - 12
    return waiting, broker.purgatories.fetch


def test_completed_operations_are_purged_though_nothing_expires(world):
    _, purgatory = complete_twelve_fetches(world)
    world.until(lambda: purgatory.watched() == 0)


def test_nothing_is_purged_while_paused(world):
    waiting, purgatory = complete_twelve_fetches(world)
    world.cluster.pause(1)
    watched = purgatory.watched()
    world.let_pass(1_000)
    assert (purgatory.watched(), purgatory.num_delayed()) == (watched, 0)
    world.cluster.resume(1)
    world.until(lambda: purgatory.watched() == 0)
    assert all(size_of(answer(world, pending)) for pending in waiting)


def test_kill_while_paused_leaves_nothing(world, park_and_pause):
    broker = world.cluster.nodes.brokers[1]
    responses = park_and_pause(produce(30), fetch(30), fetch(LONG_MS))
    world.send(1, *append())
    world.let_pass(100)
    world.cluster.kill(1)
    world.let_pass(500)
    for purgatory in broker.purgatories:
        assert (purgatory.num_delayed(), purgatory.watched(), purgatory.parked()) == (0, 0, [])
    assert responses == [[], [], []]
    assert 1 not in {one.broker for one in world.cluster.purgatory()}

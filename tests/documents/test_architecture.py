"""The tour of docs/how/architecture.md goes where requests go."""

import ast
import asyncio
import re
import sys
from contextlib import closing
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.protocol import messages
from broker_sim.runtime.virtual import run
from tests.broker_sim.chaos.raw_connection import Connection

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how" / "architecture.md").read_text()
STEP = re.compile(r"^\| \d+ \| `(.+?)` \| `(.+?)` \| .+ \|$", re.MULTILINE)
TOURS = {
    title: STEP.findall(text) for title, text in re.findall(r"^### (.+?)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
}
CONFIGS = {"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 100}


def path_of(name):
    return next(
        path
        for top in (ROOT / "broker_sim", ROOT / "purgatory" / "broker_sim_purgatory")
        if (path := top / name).exists()
    )


def functions(path):
    """Return the qualified names of a file's functions and methods."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inside = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            found |= {f"{node.name}.{each.name}" for each in inside}
    return found


class Calls:
    """Notes the calls of the functions of a tour, in order, while it is entered; and its files at all calls in them."""

    def __init__(self, steps):
        self._steps = set(steps)
        self.made = []
        self.paths = []

    def __enter__(self):
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _note(self, frame, event, _):
        if event == "call":
            code = frame.f_code
            for path, function in self._steps:
                if code.co_filename.endswith(path):
                    self.paths.append(path)
                    if code.co_qualname == function:
                        self.made.append((path, function))


async def produce(kafka, calls):
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all") as producer:
        await producer.send_and_wait("orders", b"before")
        with calls:
            await producer.send_and_wait("orders", b"one")


async def fetch(kafka, calls):
    servers = kafka.bootstrap_servers
    async with AIOKafkaConsumer("orders", bootstrap_servers=servers, fetch_max_wait_ms=9_000) as consumer:
        waiting = asyncio.create_task(consumer.getone())
        await asyncio.sleep(12)
        with calls:
            await asyncio.sleep(8)
            await kafka.produce("orders", b"one")
            await waiting


async def join(kafka, calls):
    servers = kafka.bootstrap_servers
    with calls:
        async with AIOKafkaConsumer("orders", bootstrap_servers=servers, group_id="shop"):
            await asyncio.sleep(1)


async def share_fetch(kafka, calls):
    group, member = "billing", "a-member"
    for _ in range(2):  # the first question creates the topic of the coordinators
        with closing(await connected(kafka, 1)) as client:
            answer = await client.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 6)
        await asyncio.sleep(2)
    with closing(await connected(kafka, answer.coordinators[0].node_id)) as client:
        heartbeat = messages.ShareGroupHeartbeatRequest(group, member, 0, subscribed_topic_names=["orders"])
        for _ in range(3):  # meanwhile the state of the share partition begins
            answer = await client.ask(heartbeat, 1)
            heartbeat = messages.ShareGroupHeartbeatRequest(group, member, answer.member_epoch)
            await asyncio.sleep(6)
    topic = kafka.nodes.controller.image.topics["orders"]
    request = messages.ShareFetchRequest
    fetch = request(group, member, max_wait_ms=4_000, min_bytes=1, max_bytes=1_000, max_records=10, batch_size=10)
    fetch.topics = [request.FetchTopic(topic.topic_id, [request.FetchPartition(0)])]
    with closing(await connected(kafka, topic.partitions[0].leader)) as client, calls:
        waiting = asyncio.create_task(client.ask(fetch, 2))
        await asyncio.sleep(2)
        await kafka.produce("orders", b"one")
        await waiting


async def connected(kafka, broker_id):
    """Return a connection to a broker."""
    host, _, port = kafka.bootstrap_servers.split(",")[broker_id - 1].rpartition(":")
    return await Connection.open((host, int(port)))


REQUESTS = {
    "A produce with acks=all": produce,
    "A fetch that waits": fetch,
    "A share fetch": share_fetch,
    "A join of a group": join,
}
ONE_WAY = ["A share fetch"]
"""The tours that do not come back to a file; nor to those of the way to the purgatory once the fetch is parked."""
PURGATORY = "delayed_operation_purgatory.py"


@pytest.mark.parametrize("title", REQUESTS)
def test_each_step_is_a_function_of_that_file(title):
    assert len(TOURS[title]) == 10
    for path, function in TOURS[title]:
        assert function in functions(path_of(path)), path


@pytest.mark.parametrize("title", ONE_WAY)
def test_a_tour_does_not_come_back_to_a_file(title):
    paths = [path for path, _ in TOURS[title]]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("title", REQUESTS)
def test_a_request_takes_the_steps_in_their_order(title):
    steps = TOURS[title]
    calls = Calls(steps)

    async def main(loop):
        async with SimulatedCluster(loop, 3, topics=["orders:1:3"], configs=CONFIGS, check_invariants=False) as kafka:
            await kafka.wait_until_in_sync()
            await REQUESTS[title](kafka, calls)

    run(main, 1)
    left = iter(calls.made)
    for step in steps:
        assert step in left, f"not called after the steps before it: {step}"
    if title in ONE_WAY:
        paths = [path for path, _ in steps]
        way = paths[: paths.index(PURGATORY)]
        parked = calls.paths.index(PURGATORY, calls.paths.index(way[-1]))
        assert set(way).isdisjoint(calls.paths[parked:])

"""The tour of docs/architecture.md goes where requests go."""

import ast
import asyncio
import re
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.runtime.virtual import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
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
    """Notes the calls of the functions of a tour, in order, while it is entered."""

    def __init__(self, steps):
        self._steps = set(steps)
        self.made = []

    def __enter__(self):
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _note(self, frame, event, _):
        if event == "call":
            code = frame.f_code
            for path, function in self._steps:
                if code.co_qualname == function and code.co_filename.endswith(path):
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


REQUESTS = {"A produce with acks=all": produce, "A fetch that waits": fetch, "A join of a group": join}


@pytest.mark.parametrize("title", REQUESTS)
def test_each_step_is_a_function_of_that_file(title):
    assert len(TOURS[title]) == 10
    for path, function in TOURS[title]:
        assert function in functions(path_of(path)), path


@pytest.mark.parametrize("title", REQUESTS)
def test_a_request_takes_the_steps_in_their_order(title):
    steps = TOURS[title]
    calls = Calls(steps)

    async def main(loop):
        async with SimulatedCluster(loop, 3, topics=["orders:1:3"], configs=CONFIGS, check_invariants=False) as kafka:
            await kafka.wait_until_in_sync()
            await REQUESTS[title](kafka, calls)

    run(main, 1, hash_seed="any")
    left = iter(calls.made)
    for step in steps:
        assert step in left, f"not called after the steps before it: {step}"

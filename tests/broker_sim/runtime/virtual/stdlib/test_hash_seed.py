"""A run repeats in another process; one that iterates sets of strings itself if their hashes are pinned there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from broker_sim.runtime.virtual.stdlib import pin_hash_seed

PROGRAM = """
import asyncio, random, uuid
from broker_sim.runtime.virtual import run

async def main(loop):
    loop.network.latency_ms = (0.1, 20)
    words = {f"word {number}" for number in range(50)}

    async def echo(reader, writer):
        while line := await reader.readline():
            await asyncio.sleep(random.random())
            writer.write(line)
        writer.close()

    async def client(word):
        reader, writer = await asyncio.open_connection("127.0.0.1", 7)
        writer.write(f"{word} {uuid.uuid4()}\\n".encode())
        loop.trace.record((await reader.readline()).decode().strip())
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 7):
        async with asyncio.TaskGroup() as group:
            for word in words:
                group.create_task(client(word), name=word)
        await asyncio.to_thread(sum, [1])
        await asyncio.sleep(1)
    print(loop.trace.digest(), loop.steps, loop.time())

run(main, 5, order="seeded", trace_steps=True)
"""


def start(program: str, hash_seed: str | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    if hash_seed is not None:
        environment["PYTHONHASHSEED"] = hash_seed
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_same_seed_gives_the_same_trace_in_another_process():
    outputs = [start(PROGRAM, "0").stdout for _ in range(2)]
    assert outputs[0] == outputs[1] != ""
    assert start(PROGRAM, "1").stdout not in {"", outputs[0]}


CLIENTS = """
import asyncio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from broker_sim import SimulatedCluster
from broker_sim.runtime.virtual import run

TOPICS = ["orders", "payments", "parcels"]

async def main(loop):
    async with SimulatedCluster(loop, 3, topics=[f"{topic}:4:3" for topic in TOPICS]) as kafka:
        servers = kafka.bootstrap_servers
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            for number in range(40):
                await producer.send(TOPICS[number % 3], b"x", partition=number % 4)
        async with AIOKafkaConsumer(
            *TOPICS, bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            for _ in range(40):
                await consumer.getone()
            await consumer.commit()
    print(loop.trace.digest())

run(main, 5)
"""


def test_clients_and_brokers_send_nothing_in_the_order_of_hashes():
    outputs = {start(CLIENTS, hash_seed).stdout for hash_seed in ("0", "7", None)}
    assert len(outputs) == 1
    assert outputs != {""}


def test_program_can_start_itself_anew_with_pinned_hashes():
    program = f"from broker_sim.runtime.virtual.stdlib import pin_hash_seed\npin_hash_seed()\n{PROGRAM}"
    assert start(program, None).stdout == start(program, "0").stdout != ""


def test_on_windows_the_program_is_run_anew_as_a_child_whose_exit_code_is_its_own(monkeypatch):
    # There `execve` starts another process and ends this one, for which a shell does not wait.
    started = []

    def run(command, *, env, check):
        started.append((command, env["PYTHONHASHSEED"], check))
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit) as end:
        pin_hash_seed(7)
    assert end.value.code == 3
    assert started == [([sys.executable, *sys.orig_argv[1:]], "7", False)]

"""Unmodified programs of other clients take the same course in virtual time, digest for digest."""

import asyncio
import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from broker_sim import Cluster, SimulatedCluster
from broker_sim.runtime.virtual import run
from broker_sim.runtime.virtual.programs import Program

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]
CONFLUENT_PRODUCER = """
    import os
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "acks": "all"})
    for number in range(40):
        producer.produce("orders", value=str(number), partition=number % 4)
    assert producer.flush(60) == 0
"""
CONFLUENT_WORKER = """
    import os, signal, time
    from confluent_kafka import Consumer
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    consumer = Consumer({
        "bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "group.id": "shop", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "session.timeout.ms": 6000, "heartbeat.interval.ms": 1000})
    consumer.subscribe(["orders"])
    while not stop:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        time.sleep(0.5)
        print("delivers", message.value().decode())
        try:
            consumer.commit(message, asynchronous=False)
        except Exception as error:
            print("refused", error)
    consumer.close()
    print("closed")
"""
KAFKA_PYTHON = Path(__file__).parent / "idle_minute" / "idle_kafka_python.py"


async def shop(kafka, python="python"):
    producer = kafka.start_program(python, "-c", textwrap.dedent(CONFLUENT_PRODUCER), name="producer")
    assert await producer.wait() == 0, producer.text
    worker = python, "-c", textwrap.dedent(CONFLUENT_WORKER)
    one = kafka.start_program(*worker, name="worker-1")
    two = kafka.start_program(*worker, name="worker-2")
    await asyncio.sleep(7.25)
    one.kill()
    await asyncio.sleep(10)
    again = kafka.start_program(*worker, name="worker-1")
    await asyncio.sleep(30)
    two.send_signal()
    again.send_signal()
    assert [await two.wait(), await again.wait()] == [0, 0], two.text + again.text
    return one.text + two.text + again.text


async def idle_minute(kafka, *command):
    program = kafka.start_program(*(command or ("python", KAFKA_PYTHON)))
    assert await program.wait() == 0, program.text
    return program.text


def play(scenario, seed=1):
    """Return what a scenario's programs print, and the digest of the run."""

    async def main(loop):
        loop.network.latency_ms = (0.1, 5)
        async with SimulatedCluster(
            loop, topics=["orders:4:3"], configs={"group.min.session.timeout.ms": 1000}
        ) as kafka:
            printed = await scenario(kafka)
            return printed, loop.trace.digest()

    return run(main, seed)


def test_confluent_kafka_group_with_a_killed_worker_repeats():
    printed, digest = play(shop)
    delivered = {int(line.split()[1]) for line in printed.splitlines() if line.startswith("delivers")}
    assert delivered == set(range(40))
    assert printed.count("closed") == 2
    assert play(shop) == (printed, digest)


def test_kafka_python_repeats():
    printed, digest = play(idle_minute)
    assert printed == "20 records, 60 s idle\n"
    assert play(idle_minute) == (printed, digest)


VARIATIONS = {
    "large-environment": {"env": {f"UNUSED_{number}": "x" * 500 for number in range(200)}},
    "other-folder": {"cwd": "/"},
    "no-bytecode": {"env": {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/nowhere"}},
}


@pytest.mark.soak(part="clients")
@pytest.mark.parametrize("client", [shop, idle_minute], ids=["confluent-kafka", "kafka-python"])
@pytest.mark.parametrize("variation", VARIATIONS)
def test_surroundings_do_not_matter(client, variation, monkeypatch):
    usual = play(client)
    start = SimulatedCluster.start_program
    monkeypatch.setattr(
        SimulatedCluster,
        "start_program",
        lambda kafka, *command, **options: start(kafka, *command, **options, **VARIATIONS[variation]),
    )
    assert play(client) == usual


PARENTS = {
    "node": """
        const {spawn, execSync} = require("child_process");
        const child = spawn("sh", ["-c", "read word; sleep 3; echo $word; exit 4"]);
        child.stdout.on("data", data => process.stdout.write(data));
        child.on("exit", code => console.log(code, String(execSync("sleep 2; echo later")).trim()));
        child.stdin.end("hello\\n");
    """,
    "java": """
        public class Parent {
            public static void main(String[] words) throws Exception {
                var child = new ProcessBuilder("sh", "-c", "read word; sleep 3; echo $word; exit 4").start();
                child.outputWriter().append("hello\\n").close();
                System.out.println(child.inputReader().readLine());
                System.out.print(child.waitFor());
                var later = new ProcessBuilder("sh", "-c", "sleep 2; echo ' later'").inheritIO().start();
                later.waitFor();
            }
        }
    """,
}


@pytest.mark.parametrize(("program", "package"), [("node", "nodejs"), ("java", "openjdk-17-jdk-headless")])
def test_processes_of_node_and_java_take_part(program, package, tmp_path, find_program):
    find_program(program, package)
    path = tmp_path / {"node": "parent.js", "java": "Parent.java"}[program]
    path.write_text(textwrap.dedent(PARENTS[program]))

    async def main(loop):
        parent = Program(loop, "parent", [program, path])
        assert await parent.wait() == 0, parent.text
        return parent.text.splitlines(), round(loop.time())

    assert run(main, 1) == (["hello", "4 later"], 5)


TWELVE_SECONDS = """
    import os, time
    from confluent_kafka import Consumer, Producer
    servers = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "client.id": "producer"})
    for number in range(40):
        producer.produce("orders", value=str(number), partition=number % 4)
    assert producer.flush(60) == 0
    consumer = Consumer({
        "bootstrap.servers": servers, "group.id": "shop", "auto.offset.reset": "earliest", "client.id": "consumer",
        "session.timeout.ms": 6000, "heartbeat.interval.ms": 1000})
    consumer.subscribe(["orders"])
    end, count = time.monotonic() + 12, 0
    while time.monotonic() < end:
        count += consumer.poll(0.5) is not None
    assert count == 40
    consumer.close()
"""
FIDELITY = {"topics": ["orders:4:3"], "configs": {"group.min.session.timeout.ms": 1000}}


def requests_of(kafka):
    """Return the number of requests by API and client."""
    return Counter((entry.api, entry.client_id) for entry in kafka.requests())


def requests_in_real_time(program):
    with Cluster(3, **FIDELITY) as kafka:
        kafka.keep_requests(10_000)
        environment = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)
        return requests_of(kafka)


def requests_in_virtual_time(program):
    async def main(loop):
        loop.network.latency_ms = (0.1, 0.5)
        async with SimulatedCluster(loop, **FIDELITY) as kafka:
            kafka.keep_requests(10_000)
            client = kafka.start_program("python", "-c", program)
            assert await client.wait() == 0, client.text
            return requests_of(kafka)

    return run(main, 1)


@pytest.mark.soak(part="clients")
def test_requests_are_those_of_real_time():
    program = textwrap.dedent(TWELVE_SECONDS)
    real, virtual = requests_in_real_time(program), requests_in_virtual_time(program)
    assert set(real) == set(virtual)
    other = {key: (real[key], virtual[key]) for key in real if abs(real[key] - virtual[key]) > max(1, real[key] // 10)}
    assert not other, f"API and client: (real, virtual) {other}"

"""Faults that hit a program where a coroutine cannot be hit: between two statements, and in what it depends on."""

import asyncio
import platform
import shutil

import pytest

from broker_sim.chaos import InvariantError, Schedule, run_chaos
from broker_sim.chaos.program_workers import ProgramTest
from broker_sim.runtime.virtual.programs import fingerprint

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]
PAIRS = """
import os, time
while True:
    for number in range(20):
        os.write(1, b"begin\\n")
        os.write(1, b"end\\n")
    time.sleep(1)
"""
ASKS = """
import os, socket, time
host, port = os.environ["DEPENDENCY_URL"].removeprefix("http://").rstrip("/").split(":")
while True:
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
        print(connection.recv(100)[:12])
    time.sleep(1)
"""
LISTENS = """
import os, socket
with socket.create_server(("0.0.0.0", 8080)) as server:
    while True:
        with server.accept()[0] as connection:
            connection.sendall(os.environ["WORKER"].encode())
"""


def play(text, schedule):
    async def test(chaos):
        chaos.start(chaos.program("python", "-S", "-c", text, may_fail=False))
        await chaos.faults_over()

    return run_chaos(test, Schedule.parse(schedule))


def lines_of(outcome):
    return [moment.what for moment in outcome.moments if moment.who == "worker-1"]


def crash_at(ms):
    return f"seed={ms} brokers=1 workers=1 latency_ms=0 duration_ms=4000\n{ms} crash worker-1 for=1500"


def test_crash_may_fall_between_two_statements():
    outcomes = [play(PAIRS, crash_at(ms)) for ms in range(1560, 1620, 10)]
    assert all(outcome.error is None for outcome in outcomes)
    texts = [" ".join(lines_of(outcome)) for outcome in outcomes]
    torn = [text for text in texts if "begin exits" in text]
    assert 0 < len(torn) < len(texts)
    assert all("starts again begin" in text for text in texts)


def test_workers_that_listen_are_reached_by_their_names():
    async def test(chaos):
        chaos.start(chaos.program("python", "-S", "-c", LISTENS), count=2)
        await chaos.faults_over()
        for name in ("worker-1", "worker-2"):
            reader, writer = await asyncio.open_connection(name, 8080)
            assert await reader.read() == name.encode()
            writer.close()

    assert run_chaos(test, Schedule.parse("seed=1 brokers=1 workers=2 latency_ms=0 duration_ms=1000")).text == ""


def test_crash_between_two_statements_repeats():
    digests = {play(PAIRS, crash_at(1590)).digest for _ in range(3)}
    assert len(digests) == 1


def test_fault_of_what_a_program_depends_on_is_seen():
    outcome = play(ASKS, "seed=1 brokers=1 workers=1 latency_ms=0 duration_ms=5000\n1500 fail worker-1 for=2000")
    answers = [line for line in lines_of(outcome) if line.startswith("b'")]
    ok, lost = "b'HTTP/1.1 200'", "b''"
    assert answers[:5] == [ok, ok, lost, lost, ok]


def test_program_that_fails_by_itself_still_fails_the_run():
    outcome = play("raise SystemExit(3)", crash_at(1500))
    assert isinstance(outcome.error, InvariantError)


def test_report_tells_what_the_run_depends_on():
    text = "import socket; raise SystemExit(3)"
    schedule = Schedule.parse("seed=1 brokers=1 workers=1 latency_ms=0 duration_ms=100")
    failure = ProgramTest(("python", "-S", "-c", text)).examine(schedule, shrinks=False)
    assert f"ran on Linux {platform.release()} on {platform.machine()}, glibc " in str(failure)
    assert failure.to_json()["ran_on"].endswith(f"library {fingerprint()[-8:]}")

"""Tests written with `def` run in virtual time, in a process of their own, with fixtures and reports as elsewhere."""

import shutil

import pytest

pytest_plugins = ["pytester"]
pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]

SUITE = """
import os
import random
import signal
import tempfile
import uuid
from pathlib import Path

FOLDER = tempfile.TemporaryDirectory()

@pytest.fixture
def topic(kafka):
    kafka.create_topic("orders", partitions=1, replication_factor=3)
    yield "orders"
    assert len(kafka.isr("orders")) == 2

@pytest.mark.virtual_time(seeds=2, latency_ms=(1, 5), configs={"broker.session.timeout.ms": 120_000})
@pytest.mark.parametrize("hours", [2])
def test_verbs(kafka, topic, hours):
    start = time.monotonic()
    kafka.pause(kafka.followers(topic)[0])
    time.sleep(3600 * hours)
    kafka.wait_until(lambda: len(kafka.isr(topic)) == 2, timeout_s=60)
    assert 7200 <= time.monotonic() - start < 7201
    with pytest.raises(LookupError):
        kafka.leader("no-such-topic")
    with kafka.fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER") as fault:
        assert fault.hits == 0

@pytest.mark.virtual_time
def test_values(kafka):
    print("printed by the test")
    time.sleep(3600)
    assert kafka.bootstrap_servers.count(":") == 2

@pytest.mark.virtual_time
def test_debugger():
    breakpoint()

@pytest.mark.virtual_time
def test_ends():
    os._exit(3)

@pytest.mark.virtual_time
def test_escapes():
    signal.setitimer(signal.ITIMER_PROF, 3)

@pytest.mark.virtual_time
def test_hook(kafka):
    kafka.hook("Produce", lambda request: None)

@pytest.mark.virtual_time(seeds=2)
@pytest.mark.parametrize("number", [1, 2])
def test_draws(number):
    assert Path(FOLDER.name).is_dir()
    with Path("drawn.txt").open("a") as file:
        print(random.random(), uuid.uuid4(), time.time(), file=file)

@pytest.mark.virtual_time
def test_skips():
    pytest.skip("not today")

@pytest.mark.virtual_time(seeds=2)
@pytest.mark.xfail(strict=True)
def test_is_expected_to_fail():
    assert False
"""


def test_each_test_is_reported_as_if_it_had_run_here(run_suite, pytester):
    result = run_suite(SUITE, "-rA")
    result.assert_outcomes(passed=3, failed=5, skipped=1, xfailed=1)
    drawn = (pytester.path / "drawn.txt").read_text().splitlines()
    assert drawn[:2] == drawn[2:], "a seed does not depend on the runs before"
    assert drawn[0] != drawn[1]
    result.stdout.fnmatch_lines_random(
        [
            "E  *assert 3 == 2",
            "printed by the test",
            "seed 0, 3600.0* s of virtual time, trace *",
            "*PYTHONHASHSEED=0 pytest *::test_values* --virtual-seed=0",
            "E  *debuggers do not work in virtual time*",
            "*ended with exit code 3, before its report*",
            "EscapeError: program 'test': setitimer of processor time has no virtual form*",
            "E *TypeError: the loop cannot call a function of the test; write it with async def",
        ]
    )


def test_debugger_of_the_command_line_is_refused(run_suite):
    result = run_suite(
        """
@pytest.mark.virtual_time
def test_any(): pass
""",
        "--pdb",
    )
    result.stdout.fnmatch_lines(["*test_any: debuggers do not work in virtual time*"])


def test_failure_under_chaos_is_shrunk_and_repeats(run_suite):
    result = run_suite(
        '''
@pytest.mark.chaos(topics=["orders:1:3"], schedule="""
    seed=0 brokers=3 workers=2 latency_ms=0 duration_ms=2000
    500 kill broker-2 for=100
""")
def test_leader_stays(kafka):
    leader = kafka.leader("orders")
    for _ in range(5):
        time.sleep(1)
        assert kafka.leader("orders") == leader

@pytest.mark.chaos(seeds=1)
def test_waits(chaos, tmp_path):
    (tmp_path / "worker.py").write_text("import time; print('works', flush=True); time.sleep(1000)")
    worker, = chaos.start(chaos.program("python", "-S", str(tmp_path / "worker.py")))
    chaos.faults_over()
    chaos.eventually(lambda: worker.starts, "it has started")
    assert any(moment.what == "works" for moment in chaos.timeline.moments)
'''
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "seed 0: AssertionError at test_failure_*",
            "1 fault* -> 1; *",
            "*repeats",
            "*FAULT *kill broker-2 for 0.1 s",
        ]
    )

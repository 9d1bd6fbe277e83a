"""`broker-sim chaos`: many seeds, failures told once, continued where it was ended."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker_sim.chaos import Schedule, program_workers, run_chaos, search
from broker_sim.chaos.program_workers import check_of
from broker_sim.chaos.search import NoSuchTestError, load_test
from broker_sim.cli.chaos import command
from broker_sim.page.recording import runs_of_html

HERE = Path(__file__).parent
LEAVES = """
import time
difference = time.time() - time.monotonic()
while abs(time.time() - time.monotonic() - difference) < 0.5:
    time.sleep(1)
    print("ticks")
raise SystemExit("the clock is off")
"""
"""A program that ends with exit code 1 under the fault `clock`, and works under all others."""

RACES = """
import threading, time
order = []
def note(name):
    time.sleep(1)
    order.append(name)
threads = [threading.Thread(target=note, args=(name,)) for name in "abc"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
time.sleep(10)
raise SystemExit("a came last" if order[-1] == "a" else 0)
"""
"""A program that ends with exit code 1 if its first thread runs after the others."""

SENDS = """
import asyncio, os
from aiokafka import AIOKafkaProducer

async def main():
    async with AIOKafkaProducer(bootstrap_servers=os.environ["KAFKA_BOOTSTRAP_SERVERS"]) as producer:
        await producer.send_and_wait("orders", b"one")
        await asyncio.sleep(60)

asyncio.run(main())
"""
"""A program that sends one order, which nobody bills."""


@pytest.fixture
def chaos(tmp_path):
    """Run the command beside the applications; returns the finished process."""

    def run(*arguments, code=0, stdin=None):
        command = [sys.executable, "-m", "broker_sim", "chaos", *arguments]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
        done = subprocess.run(
            command, cwd=HERE, env=env, input=stdin, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def test_failure_is_shrunk_reported_and_repeated(chaos, tmp_path):
    results, told = tmp_path / "results.jsonl", tmp_path / "told.json"
    wanted = ["applications:forget", "--faults", "crash", "--seeds", "6", "--jobs", "1"]
    found = chaos(*wanted, "--results", str(results), "--json", str(told), code=1)
    assert "faults -> 1, in " in found.stdout
    assert ", repeats\n" in found.stdout
    (failure,) = json.loads(told.read_text())
    assert failure["invariant"] == "nothing is forgotten"
    assert failure["repeats"]
    head, action = failure["schedule"]
    assert action.split()[1:3] in (["crash", "worker-1"], ["crash", "worker-2"])

    schedule = tmp_path / "schedule.txt"
    schedule.write_text(f"{head}\n{action}\n")
    page = tmp_path / "run.html"
    link = ("--link", "http://127.0.0.1:8765/")
    again = chaos(wanted[0], "--schedule", str(schedule), "--page", str(page), *link, code=1)
    assert f"the run plays in a browser: {page} (0." in again.stdout
    assert "nothing is forgotten" in runs_of_html(page.read_text("utf-8"))[0].failure
    assert f"trace {failure['digest'][:16]}" in again.stdout
    assert "open it in a browser: http://127.0.0.1:8765/#chaos=" in again.stdout

    lines = results.read_text().splitlines()
    results.write_text("\n".join((*lines[:-1], lines[-1][:20])))
    continued = chaos(*wanted, "--results", str(results), "--no-shrink", code=1)
    assert "5 of them stored" in continued.stderr
    assert continued.stdout.splitlines()[-1] == found.stdout.splitlines()[-1]
    other = chaos(*wanted[:-4], "--seeds", "9", "--workers", "3", "--results", str(results), code=2)
    assert "was written with other options" in other.stderr


def test_what_no_seed_has_seen_fails_the_search(chaos, tmp_path):
    results = tmp_path / "results.jsonl"
    arguments = ["test_sightings:never_commits", "--duration", "1", "--jobs", "1", "--results", str(results)]
    chaos(*arguments, "--seeds", "1")
    for _ in range(2):  # the second time from the file alone
        done = chaos(*arguments, "--seeds", "2", code=1)
        passed, faults, seen, failure = done.stdout.splitlines()
        assert passed.startswith("2 of 2 seeds passed")
        assert faults.startswith("faults that took effect / happened / were drawn: ")
        assert seen == "seen: 'commits' in 0 of 2 seeds"
        assert failure.startswith("never seen in 2 seeds: 'commits'; run more seeds, ")


def test_passing_schedule_is_shown_too(chaos, tmp_path):
    # A pipe can be read only once, although the command restarts itself to pin its hash seed.
    schedule, report = "seed=1 workers=2 duration_ms=60000\n30000 crash worker-1 for=500", tmp_path / "report.json"
    arguments = ["applications:forget", "--schedule", "/dev/stdin", "--timeline", "--json", str(report)]
    shown = chaos(*arguments, stdin=schedule).stdout.splitlines()
    assert shown[0].split() == ["time", "who", "what"]
    assert "30.000  FAULT     crash worker-1 for 0.5 s: not done, worker-1 is not running" in "\n".join(shown)
    assert shown[-1] == "the test passes under this schedule"
    ((passed,),) = [json.loads(report.read_text())]
    assert [moment["what"] for moment in passed["timeline"]][:2] == ["is done", "is done"]


def test_orders_are_explored_and_the_one_that_fails_repeats(chaos, tmp_path):
    told = tmp_path / "told.json"
    found = chaos("applications:hand_over", "--exhaustive", "--json", str(told), code=1)
    assert found.stdout.splitlines()[0] == "2 orders explored, the last one fails"
    assert "1 deviation from first in, first out -> 1 deviation, in " in found.stdout
    (failure,) = json.loads(told.read_text())
    assert failure["repeats"]

    schedule = tmp_path / "schedule.txt"
    schedule.write_text("\n".join(failure["schedule"]))
    again = chaos("applications:hand_over", "--schedule", str(schedule), code=1)
    assert f"trace {failure['digest'][:16]}" in again.stdout


def test_orders_of_brokers_are_explored_too(chaos):
    found = chaos("applications:forget_a_broker", "--exhaustive-brokers", code=1)
    assert found.stdout.splitlines()[0] == "6 orders explored, the last one fails"
    assert "2 deviations from first in, first out -> 2 deviations, in " in found.stdout
    assert "the controller receives a message from broker 3 before one from broker 1" in found.stdout
    assert "s of virtual time, trace " in found.stdout
    assert ", repeats" in found.stdout


def test_wrong_usage_is_one_line(chaos):
    refused = chaos("applications:commit_last", "--faults", "explode", code=2)
    assert "unknown fault 'explode'" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("json", "name the test as MODULE:FUNCTION"),
        ("json:nothing", "the module has no 'nothing'"),
        ("no_such_module:test", "No module named 'no_such_module'"),
    ],
)
def test_unknown_test_is_reported_in_one_line(monkeypatch, name, message):
    monkeypatch.syspath_prepend(str(HERE))
    with pytest.raises(NoSuchTestError, match=message):
        load_test(name)


@pytest.mark.threads
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev")
class TestProgramsAsWorkers:
    COMMAND = ("python", "-S", "-c", LEAVES)
    SEARCH = ("--virtual", "--faults", "clock,freeze", "--duration", "5", "--seeds", "1", "--jobs", "1")

    def test_worker_that_dies_is_shrunk_to_its_fault_and_repeats(self, chaos, tmp_path):
        report = tmp_path / "report.json"
        search = chaos(*self.SEARCH, "--json", str(report), "--", *self.COMMAND, code=1)
        (failure,) = json.loads(report.read_text())
        assert failure["invariant"] == "no worker ends with an exit code other than 0"
        assert failure["error"].endswith("ended with 1; its last output: the clock is off")
        assert failure["repeats"]
        head, fault = failure["schedule"]
        assert fault.split()[1] == "clock"
        lines = [(moment["who"], moment["what"]) for moment in failure["timeline"]]
        assert ("worker-1", "ticks") in lines
        assert ("worker-2", "ticks") in lines

        source = search.stdout[
            search.stdout.index("from broker_sim.chaos import") : search.stdout.index(" seeds passed")
        ]
        printed_test = {}
        exec(source.rpartition("\n")[0], printed_test)
        with pytest.raises(AssertionError, match="the clock is off"):
            printed_test[f"test_seed_{failure['seed']}"]()
        outcome = run_chaos(program_workers(*self.COMMAND), Schedule.parse(f"{head}\n{fault}"))
        assert outcome.digest == failure["digest"]

    def test_order_of_threads_that_fails_is_repeated(self, chaos):
        command = (*self.SEARCH[:-4], "--seeds", "4", "--jobs", "1", "--", "python", "-S", "-c", RACES)
        assert chaos(*command).stdout.startswith("4 of 4 seeds passed")
        failing = chaos("--order", "seeded", *command, code=1).stdout
        assert "-> 0 faults, the seeded order, in " in failing
        assert ", repeats" in failing
        assert "workers=2 latency_ms=0 duration_ms=0 order=seeded\n" in failing
        assert "a came last" in failing

    def test_with_a_check_workers_may_die_and_it_says_what_must_hold(self, chaos):
        passing = chaos(*self.SEARCH, "--check", "program_check.py", "--", *self.COMMAND)
        assert passing.stdout.startswith("1 of 1 seeds passed")
        check = "program_check.py::nobody_starts_again"
        failing = chaos(*self.SEARCH, "--no-shrink", "--check", check, "--", *self.COMMAND, code=1)
        call = "prepare=program_check.prepare, check=program_check.nobody_starts_again)"
        assert (
            "import program_check\nfrom broker_sim.chaos import Schedule, program_workers, run_chaos" in failing.stdout
        )
        assert call in failing.stdout

    def test_judgement_of_what_workers_wrote_is_made_in_each_seed(self, chaos):
        command = ("--topic", "orders:1:3", "--topic", "bills:1:3", "--", sys.executable, "-c", SENDS)
        judgements = ("--judge", "lost=orders", "--judge", "lost=orders:bills")
        failing = chaos(*self.SEARCH, "--no-shrink", *judgements, *command, code=1)
        assert "nothing of orders is lost: lost: one" in failing.stdout
        assert "judgements=['lost=orders', 'lost=orders:bills'])" in failing.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--virtual", "applications:forget"], "write it after --"),
        (["--virtual", "--"], "Missing argument 'COMMAND...'"),
        (["--virtual", "--", "no-such-command"], "command not found"),
        (["--virtual", "--exhaustive", "--", sys.executable], "--exhaustive is an option of a test in Python"),
        (["--virtual", "--begin-with", "x", "--", sys.executable], "a command after -- in real time"),
        (["--check", "program_check.py", "--", sys.executable], "--check is an option of --virtual"),
        (["--virtual", "--judge", "lost", "--", sys.executable], "unknown judgement 'lost'"),
        (["--judge", "lost=orders", "applications:forget"], "--judge is an option of a command after --"),
    ],
)
def test_wrong_usage_of_programs_says_what_to_write(arguments, message):
    refused = CliRunner().invoke(command, arguments)
    assert message in refused.output


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("missing.py", "file not found"),
        ("program_check.py::missing", "the module has no 'missing'"),
        ("/etc/hostname", "Python must be able to import it"),
    ],
)
def test_check_that_cannot_be_imported_is_refused(monkeypatch, check, message):
    monkeypatch.chdir(HERE)
    with pytest.raises(NoSuchTestError, match=message):
        check_of(check)


@pytest.mark.parametrize(("threads", "method"), [(["1"], "fork"), (["1", "2"], "spawn"), ([], "spawn")])
def test_process_with_other_threads_is_not_forked(monkeypatch, tmp_path, threads, method):
    for thread in threads:
        (tmp_path / thread).mkdir()
    monkeypatch.setattr(search, "THREADS", tmp_path)
    assert search._start_method() == method

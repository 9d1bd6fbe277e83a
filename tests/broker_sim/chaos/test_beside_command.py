"""A command in real time beside a cluster of sockets: its environment, its faults, its end."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from broker_sim.chaos import Schedule, ScheduleError
from broker_sim.chaos.command import CommandOutcome, CommandRun, check_schedule
from broker_sim.chaos.faults.weights import weights_beside_a_command
from broker_sim.cli import chaos

PYTHON = [sys.executable, "-IS", "-c"]
CONNECT = """
import os, socket, sys, time
began = time.monotonic()
host, port = os.environ["KAFKA_BOOTSTRAP_SERVERS"].split(",")[0].split(":")
client = socket.create_connection((host, int(port)), timeout=20)
client.sendall(bytes([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255]))  # ApiVersions
client.recv(4)
"""
WAITED = """
sys.exit(6 if time.monotonic() - began > 0.25 else 0)
"""
FROZEN = """
last = time.monotonic()
while last - began < 5:
    time.sleep(0.01)
    last, before = time.monotonic(), last
    if last - before > 0.25:
        sys.exit(7)
"""
UNTIL_TOLD = """
import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print("ready", flush=True)
time.sleep(60)
"""
CONTROLLED = """
from http.client import HTTPConnection
control = HTTPConnection(os.environ["BROKER_SIM_CONTROL"].removeprefix("http://"), timeout=20)
while True:
    control.request("GET", "/brokers/3")
    if b'"dead"' in control.getresponse().read():
        sys.exit(5)
    time.sleep(0.01)
"""


def run(program, *actions, duration_ms=1_000, **options):
    """Run a program beside one broker, or as many as the actions need."""
    brokers = 3 if any("broker-3" in action for action in actions) else 1
    head = f"seed=1 brokers={brokers} duration_ms={duration_ms}"
    schedule = Schedule.parse("\n".join((head, *actions)))
    return asyncio.run(CommandRun([*PYTHON, program], schedule, **options).run())


def told(outcome):
    return [f"{moment.who}: {moment.what}" for moment in outcome.moments]


def test_command_finds_the_cluster_and_its_faults():
    kill = "10 kill broker-3 for=29000"  # until the command has seen it, however slow the machine is
    outcome = run(CONNECT + CONTROLLED, kill, duration_ms=30_000)
    assert outcome.exit_code == 5
    assert "FAULT: the schedule begins: a client has connected" in told(outcome)
    assert "FAULT: kill broker-3 for 29 s" in told(outcome)
    assert told(outcome)[-1] == "command: exits with code 5"
    assert "s before the faults were over" in outcome.summary


def test_nothing_fails_before_a_client_has_come():
    outcome = run("pass", "0 kill broker-1 for=10")
    assert outcome.exit_code == 0
    assert [text for text in told(outcome) if text.startswith("FAULT")] == []
    assert outcome.summary.endswith("no fault happened, because no client sent a request")


def test_faults_wait_for_the_client_that_they_are_to_begin_with():
    named = CONNECT.replace("0, 10, 0, 18", "0, 14, 0, 18").replace("255, 255])", "0, 4]) + b'slow'")
    waits = run(CONNECT + named, "0 kill broker-3 for=10", begin_with="slo", duration_ms=10)
    assert "FAULT: the schedule begins: slow has connected" in told(waits)
    nobody = run(CONNECT, "0 kill broker-1 for=10", begin_with="slow")
    assert nobody.summary.endswith("no fault happened, because no client whose id contains 'slow' sent a request")


def test_frozen_command_stops_and_continues():
    outcome = run(CONNECT + FROZEN, "100 freeze worker-1 for=300", "150 freeze worker-1 for=10")
    assert outcome.exit_code == 7
    assert "FAULT: freeze worker-1 for 0.01 s: not done, the command is not running" in told(outcome)


def test_broker_that_was_cut_off_is_reached_again():
    # Since before the first request, with which the fault begins: it is over at least that much later.
    again = CONNECT.replace("began =", "again =")
    outcome = run(f"{CONNECT}{again}{WAITED}", "0 unreachable broker-1 for=300")
    assert outcome.exit_code == 6


def test_report_names_the_failure():
    outcome = run(CONNECT + CONNECT, "0 error brokers for=900 value=ApiVersions/UNSUPPORTED_VERSION")
    assert "client: ApiVersions to broker 1: UNSUPPORTED_VERSION" in told(outcome)


def notes_of(one):
    """Return what has happened beside the command until now; nothing before it starts."""
    return [moment.what for moment in one._timeline.moments] if hasattr(one, "_timeline") else []


def test_faults_end_before_the_command_does(tmp_path):
    ended = tmp_path / "ended"
    program = f"{CONNECT}while not os.path.exists({str(ended)!r}): time.sleep(0.01)"
    schedule = Schedule.parse("seed=1 brokers=1 duration_ms=100\n0 pause broker-1 for=50")

    async def main():
        one = CommandRun([*PYTHON, program], schedule)
        running = asyncio.create_task(one.run())
        while not any("all over" in what for what in notes_of(one)):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        ended.touch()
        return await running

    outcome = asyncio.run(asyncio.wait_for(main(), 60))
    assert "FAULT: all over, all replicas in sync" in told(outcome)
    assert outcome.summary.endswith("all 1 faults were over")


@pytest.fixture
def beside(tmp_path):
    """Start the command line; a process that is not waited for is killed at the end."""
    started = []

    def start(*words):
        command = [sys.executable, "-m", "broker_sim", "chaos", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_signal_is_passed_on_and_the_schedule_repeats(beside, tmp_path):
    options = ["--seed", "7", "--duration", "20", "--brokers", "1"]
    files = ["--write-schedule", "written.txt", "--json", "told.json"]
    process = beside(*options, *files, "--", *PYTHON, CONNECT + UNTIL_TOLD)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 9, text
    assert "command  gets SIGTERM" in text
    (tmp_path / "again.txt").write_text((tmp_path / "written.txt").read_text())
    repeated = beside("--schedule", "again.txt", *files, "--", *PYTHON, "import sys; sys.exit(3)")
    assert repeated.wait(60) == 3
    assert json.loads((tmp_path / "told.json").read_text())["schedule"] == (
        (tmp_path / "written.txt").read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--", "no-such-command"], 127, "no-such-command: command not found"),
        (["--"], 2, "Missing argument 'COMMAND...'"),
        (["--faults", "crash", "--", "true"], 2, "crash is possible in virtual time only"),
        (["--faults", "explode", "--", "true"], 2, "unknown fault 'explode'"),
        (["--jobs", "2", "--", "true"], 2, "--jobs is an option of a test, not of a command"),
        (["--workers", "2", "--", "true"], 2, "--workers is an option of a test, not of a command"),
        (["--begin-with", "a", "module:test"], 2, "--begin-with is an option of a command after --"),
        ([], 2, "name a test as MODULE:FUNCTION, or write a command after --"),
        (["python", "worker.py"], 2, "a command is written after --, as `-- python worker.py`"),
        (["--judge", "onec=orders:bills", "--", "true"], 2, "did you mean once?"),
        (["module:test", "--", "true"], 2, "name a test as MODULE:FUNCTION, or write a command after --"),
        (["--topic", "a:b", "--", "true"], 2, "Invalid value for '--topic'"),
        (["--config", "broker.id=x", "--", "true"], 2, "broker.id"),
    ],
)
def test_wrong_usage_starts_nothing(words, code, message):
    with pytest.raises(click.ClickException) as refused, chaos.command.make_context("chaos", words) as context:
        context.command.invoke(context)
    assert refused.value.exit_code == code
    assert message in refused.value.format_message()


def test_file_that_is_not_executable_is_named(beside, tmp_path):
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    os.chmod(program, 0o755)  # noqa: PTH101 - as short
    process = beside("--brokers", "1", "--", str(program))
    _, error = process.communicate(timeout=60)
    assert process.returncode == 126
    assert "program: Exec format error" in error


def test_ended_by_a_signal_is_128_and_more():
    outcome = run("import os; os.kill(os.getpid(), 9)")
    assert outcome.exit_code == 137


@pytest.mark.parametrize("line", ["0 crash worker-1 for=10", "0 mute broker-1 for=10"])
def test_what_needs_virtual_time_is_refused(line):
    with pytest.raises(ScheduleError, match="is possible in virtual time only; with a command"):
        check_schedule(Schedule.parse(f"seed=1\n{line}"))


def test_command_is_frozen_only_if_freeze_is_named():
    assert "freeze" not in weights_beside_a_command(None)
    assert weights_beside_a_command(["freeze", "kill"]) == {"freeze": 2, "kill": 1}


def test_outcome_as_json_has_all_of_it():
    schedule = Schedule.parse("seed=4\n5 kill broker-1 for=10")
    outcome = CommandOutcome(("mvn", "test"), schedule, 1, 9.0, 30.0, ())
    assert outcome.to_json()["schedule"] == str(schedule).splitlines()
    assert outcome.summary == ("seed 4: exit code 1 after 9.0 s; the command ended 21.0 s before the faults were over")


SENDS_TWICE = """
import asyncio, os
from aiokafka import AIOKafkaProducer
async def main():
    async with AIOKafkaProducer(bootstrap_servers=os.environ["KAFKA_BOOTSTRAP_SERVERS"]) as producer:
        for value in (b"1", b"2", b"1"):
            await producer.send_and_wait("orders", value, partition=0)
asyncio.run(main())
"""


def test_judgements_are_made_when_the_command_has_ended():
    run_judged = CommandRun(
        [sys.executable, "-c", SENDS_TWICE],
        Schedule.parse("seed=1 brokers=1 duration_ms=0"),
        topics=["orders:1:1", "bills:1:1"],
        judgements=["twice=orders", "lost=orders", "lost=orders:bills", "twice=missing"],
    )
    outcome = asyncio.run(run_judged.run())
    assert outcome.exit_code == 0
    assert outcome.code == 1
    twice, lost, missing = outcome.broken
    assert twice == "nothing of orders occurs twice: twice: 1"
    assert lost == "nothing of orders is lost: lost: 1, 2"
    assert missing.startswith("twice=missing cannot be judged: ")
    assert str(outcome).endswith("\n".join(outcome.broken))


def test_judgement_that_there_is_not_is_refused():
    refused = CliRunner().invoke(chaos.command, ["--judge", "sum=orders", "--", sys.executable])
    assert refused.exit_code == 2
    assert "unknown judgement 'sum=orders'; write lost=TOPIC, " in refused.output

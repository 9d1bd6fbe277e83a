"""The command `broker-sim`: what it prints, where, and how it ends."""

import contextlib
import json
import random
import signal
import socket
import subprocess
import sys

import pytest

from broker_sim.control.client import ControlClient
from broker_sim.trace import FIELDS

TIMEOUT_S = 120
COMMAND = [sys.executable, "-m", "broker_sim"]


@pytest.fixture
def broker_sim():
    """Return a function that runs the command to its end: (exit code, stdout, stderr)."""

    def run(*arguments, **environment):
        done = subprocess.run(
            [*COMMAND, *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=environment or None,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def running():
    """Return a function that starts `run` and returns its process and its ready line."""
    processes = []

    def start(*arguments):
        process = subprocess.Popen(
            [*COMMAND, "run", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        line = process.stdout.readline()
        assert line, process.stderr.read()
        return process, json.loads(line)

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_prints_one_line_and_ends_cleanly_on_a_signal(running, number):
    process, ready = running("--brokers", "2")
    assert ready["pid"] == process.pid
    assert len(ready["bootstrap_servers"].split(",")) == 2
    assert ready["control"].startswith("http://127.0.0.1:")
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, stdout, stderr) == (0, "", "")


def test_run_serves_on_its_addresses_with_its_topics(running):
    _, ready = running("--topic", "orders:2:1:retention.ms=1000", "--topic", "other")
    for address in ready["bootstrap_servers"].split(","):
        host, port = address.split(":")
        socket.create_connection((host, int(port)), TIMEOUT_S).close()
    topics = ControlClient(ready["control"]).get("/status")["topics"]
    assert {t["name"]: len(t["partitions"]) for t in topics} == {"orders": 2, "other": 1}


def test_run_takes_consecutive_ports(running, free_port_pair):
    _, ready = running("--brokers", "2", "--port", str(free_port_pair))
    assert ready["bootstrap_servers"] == (
        f"127.0.0.1:{free_port_pair},127.0.0.1:{free_port_pair + 1}"
    )


@pytest.fixture
def free_port_pair():
    """Return a free port whose successor is free too, outside the range of ephemeral ports."""
    for port in range(random.SystemRandom().randrange(10_000, 19_000), 20_000):
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for taken in (port, port + 1):
                held.enter_context(socket.create_server(("127.0.0.1", taken)))
            return port
    raise AssertionError("no two ports are free")


def test_same_seed_makes_the_same_ids(running):
    ids = [
        ControlClient(running("--seed", seed)[1]["control"]).get("/status")["cluster_id"]
        for seed in ("1", "1", "2")
    ]
    assert ids[0] == ids[1] != ids[2]


def test_run_traces_into_a_file(running, tmp_path):
    path = tmp_path / "trace.jsonl"
    process, _ = running("--topic", "orders:1:3", "--trace", str(path))
    process.terminate()
    process.communicate(timeout=TIMEOUT_S)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    # The followers' fetches have nothing to read and wait.
    assert {line["client_id"] for line in lines} >= {"replica-1", "replica-2", "replica-3"} - {
        f"replica-{line['broker']}" for line in lines
    }
    assert all(tuple(line) == FIELDS for line in lines)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--brokers", "0"], "'--brokers'"),
        (["--topic", "a:b"], "orders:3:3:min.insync.replicas=2"),
        (["--topic", "orders:1:9"], "replication factor"),
        (["--topic", "orders", "--topic", "orders"], "already exists"),
        (["--config", "nonsense"], "KEY=VALUE"),
        (["--config", "nonsense=1"], "Unknown broker config name: nonsense"),
        (["--config", "min.insync.replicas=0"], "min.insync.replicas"),
        (["--as-version", "1.9"], "'4.3'"),
        (["--port", "65535"], "--port 65535"),
        (["--frobnicate"], "--frobnicate"),
    ],
)
def test_wrong_option_is_one_line_that_names_it(broker_sim, arguments, reason):
    code, stdout, stderr = broker_sim("run", *arguments)
    assert (code, stdout) == (2, "")
    assert stderr.count("\n") == 1
    assert reason in stderr


@pytest.mark.parametrize("option", ["--port", "--control-port"])
def test_port_in_use_is_one_line_that_says_what_to_do(broker_sim, option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, stdout, stderr = broker_sim("run", "--brokers", "1", option, str(port))
    assert (code, stdout) == (1, "")
    assert stderr == (
        f"broker-sim: cannot listen on 127.0.0.1:{port} (Address already in use); "
        f"choose another {option}, or 0 for any free one\n"
    )


def test_trace_that_cannot_be_written_is_one_line(broker_sim, tmp_path):
    path = tmp_path / "missing" / "trace.jsonl"
    code, stdout, stderr = broker_sim("run", "--trace", str(path))
    assert (code, stdout) == (1, "")
    assert stderr.count("\n") == 1
    assert str(path) in stderr


def test_without_a_command_help_is_shown(broker_sim):
    code, stdout, stderr = broker_sim()
    assert code == 2
    assert "run" in stdout + stderr
    assert broker_sim("--help")[0] == 0


def test_unknown_command_is_one_line(broker_sim):
    code, _, stderr = broker_sim("frobnicate")
    assert code == 2
    assert stderr.count("\n") == 1


def test_version_is_that_of_the_package(broker_sim):
    code, stdout, _ = broker_sim("--version")
    assert code == 0
    assert stdout.startswith("broker-sim, version ")

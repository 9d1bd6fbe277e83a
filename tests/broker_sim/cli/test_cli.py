"""The command `broker-sim`: what it prints, where, and how it ends."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from broker_sim_purgatory import compiled

from broker_sim import Cluster
from broker_sim.cli import main
from broker_sim.control.client import ControlClient
from broker_sim.network.one_request import ask
from broker_sim.protocol import messages
from broker_sim.runtime.acceptor import RETRY_DELAY_S
from broker_sim.trace import FIELDS

TIMEOUT_S = 120
COMMAND = [sys.executable, "-m", "broker_sim"]
API_VERSIONS_REQUEST = bytes.fromhex("0000000a 0012 0000 00000001 ffff")


def test_run_tells_and_serves_every_listener(running):
    listeners = "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.2:0"
    advertised = "OUTSIDE://127.0.0.2:0,INSIDE://localhost:0"
    _, ready = running(*("--brokers", "2", "--listeners", listeners, "--advertised-listeners", advertised))
    assert list(ready["listeners"]) == ["OUTSIDE", "INSIDE"]
    assert ready["bootstrap_servers"] == ready["listeners"]["OUTSIDE"]
    for name, host in (("OUTSIDE", "127.0.0.2"), ("INSIDE", "localhost")):
        for address in ready["listeners"][name].split(","):
            assert address.startswith(f"{host}:")
            socket.create_connection((host, int(address.split(":")[1])), TIMEOUT_S).close()
    brokers = ControlClient(ready["control"]).get("/status")["brokers"]
    assert [broker["listeners"]["INSIDE"] for broker in brokers] == ready["listeners"]["INSIDE"].split(",")


def test_ids_and_configurations_of_single_brokers(running):
    options = ("--first-broker-id", "0", "--broker-config", "0:broker.rack=a", "--broker-config", "1:broker.rack=b")
    _, ready = running("--brokers", "2", *options)
    request, answer = messages.MetadataRequest(topics=[]), messages.MetadataResponse
    metadata = ask(ready["bootstrap_servers"], request, 9, answer, timeout_s=TIMEOUT_S)
    assert {broker.node_id: broker.rack for broker in metadata.brokers} == {0: "a", 1: "b"}


@pytest.fixture
def broker_sim(monkeypatch, capsys):
    """Return a function that runs the command to its end, here: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["broker-sim", *arguments])
        on_terminate = signal.getsignal(signal.SIGTERM)
        with pytest.raises(SystemExit) as ended:
            main()
        signal.signal(signal.SIGTERM, on_terminate)
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


@pytest.fixture
def running():
    """Return a function that starts `run` and returns its process and its ready line."""
    processes = []

    def start(*arguments):
        process = subprocess.Popen(
            [*COMMAND, "run", *arguments],
            stdin=subprocess.PIPE,
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
def test_run_prints_one_line_and_ends_cleanly_on_a_signal(running, number, free_port_pair):
    process, ready = running(*("--brokers", "2", "--port", str(free_port_pair), "--memory-limit", "512MB"))
    assert ready["pid"] == process.pid
    assert ready["build"] == ("native" if compiled else "pure")
    assert ready["memory_limit_bytes"] == 512 << 20
    assert ready["bootstrap_servers"] == (f"127.0.0.1:{free_port_pair},127.0.0.1:{free_port_pair + 1}")
    assert ready["control"].startswith("http://127.0.0.1:")
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, stdout, stderr) == (0, "", "")


def test_run_ends_with_its_stdin_if_asked_to(running):
    process, _ = running("--until-stdin-closes")
    stdout, stderr = process.communicate("not yet\n", timeout=TIMEOUT_S)
    assert (process.returncode, stdout, stderr) == (0, "", "")


def test_run_outlives_its_stdin_unless_asked(running):
    process, ready = running()
    process.stdin.close()
    assert ControlClient(ready["control"]).get("/status")["brokers"]
    assert process.poll() is None
    process.stdin = None  # communicate would use it


def test_run_serves_on_its_addresses_with_its_topics(running):
    _, ready = running(
        *("--topic", "orders:2:1:retention.ms=1000", "--topic", "other"), *("--host", "::1", "--control-host", "[::1]")
    )
    for address in ready["bootstrap_servers"].split(","):
        host, port = address.rsplit(":", 1)
        assert host == "[::1]"
        socket.create_connection(("::1", int(port)), TIMEOUT_S).close()
    topics = ControlClient(ready["control"]).get("/status")["topics"]
    assert {t["name"]: len(t["partitions"]) for t in topics} == {"orders": 2, "other": 1}


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
    _, ready = running("--brokers", "1", "--seed", "1")
    made = ControlClient(ready["control"]).get("/status")["cluster_id"]
    with Cluster(1, seed=1) as same, Cluster(1, seed=2) as other:
        assert same.status().cluster_id == made != other.status().cluster_id


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


def test_run_traces_into_parquet(running, tmp_path):
    path = tmp_path / "trace.parquet"
    process, _ = running("--topic", "orders:1:3", "--trace", str(path))
    process.terminate()
    assert process.communicate(timeout=TIMEOUT_S) == ("", "")
    table = pq.read_table(path)
    assert tuple(table.column_names) == FIELDS
    assert {"parked", "tried"} <= set(table["event"].to_pylist())


def test_parquet_trace_without_its_extra_is_one_line(tmp_path):
    program = (
        "import sys; sys.modules['pyarrow'] = None; from broker_sim.cli import main;"
        f"sys.argv = ['broker-sim', 'run', '--trace', {str(tmp_path / 't.parquet')!r}]; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("broker-sim: pyarrow is not installed: pip install 'broker-sim[parquet]'\n")


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
        (["--as-version", "1.9"], "'4.4'"),
        (["--feature", "metadata.version=6"], "metadata.version 7-33"),
        (["--port", "65535"], "--port 65535"),
        (["--host", "0.0.0.0"], "--advertised-host"),
        (["--frobnicate"], "--frobnicate"),
    ],
)
def test_wrong_option_is_one_line_that_names_it(broker_sim, arguments, reason):
    code, stdout, stderr = broker_sim("run", *arguments)
    assert (code, stdout) == (2, "")
    assert stderr.count("\n") == 1
    assert reason in stderr


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("kaos", "unknown command 'kaos' (did you mean chaos?)"),
        ("xyz", "unknown command 'xyz'"),
        ("--frobnicate", "unknown option '--frobnicate'"),
    ],
)
def test_wrong_command_is_one_line_that_names_the_nearest(broker_sim, command, reason):
    assert broker_sim(command) == (2, "", f"broker-sim: {reason}; see broker-sim --help\n")


def test_option_of_the_group_after_a_command_is_told_where_to_write_it(broker_sim):
    reason = "unknown option '--token': write it before 'pause'; see broker-sim ctl pause --help"
    assert broker_sim("ctl", "pause", "2", "--token", "secret") == (2, "", f"broker-sim: {reason}\n")


@pytest.mark.parametrize(("option", "argument"), [("--port", "ports"), ("--control-port", "control")])
def test_port_in_use_is_one_line_that_says_what_to_do(broker_sim, option, argument):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, stdout, stderr = broker_sim("run", "--brokers", "1", option, str(port))
    assert (code, stdout) == (1, "")
    assert stderr == (
        f"broker-sim: cannot listen on 127.0.0.1:{port} (Address already in use); "
        f"choose another ({argument}= in Python, {option} of a command), or 0 for any free one\n"
    )


@pytest.mark.parametrize("name", ["missing/trace.jsonl", "missing/trace.parquet", "here", "."])
def test_trace_that_cannot_be_written_is_one_line(broker_sim, tmp_path, name):
    (tmp_path / "here").mkdir()
    path = tmp_path / name
    code, stdout, stderr = broker_sim("run", "--trace", str(path))
    assert (code, stdout) == (1, "")
    assert stderr.count("\n") == 1
    assert str(path) in stderr


@pytest.mark.parametrize("made", [True, False], ids=["a file is there", "read-only"])
def test_data_directory_that_cannot_be_written_is_one_line(broker_sim, tmp_path, made):
    path = tmp_path / "file" / "data" if made else Path("/proc/data")
    (tmp_path / "file").touch()
    code, stdout, stderr = broker_sim("run", "--brokers", "1", "--data-dir", str(path))
    assert (code, stdout) == (1, "")
    assert stderr.count("\n") == 1
    assert f"cannot write {path}: " in stderr


def test_without_a_command_help_is_shown(broker_sim):
    code, stdout, stderr = broker_sim()
    assert code == 2
    assert "run" in stdout + stderr
    assert broker_sim("--help")[0] == 0


def test_unknown_command_is_one_line(broker_sim):
    code, _, stderr = broker_sim("frobnicate")
    assert code == 2
    assert stderr.count("\n") == 1


def test_command_is_a_program_that_tells_the_version_of_the_package():
    command = [*COMMAND, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert done.stdout.startswith("broker-sim, version ")


@pytest.mark.parametrize("size", ["0", "2G", "-1MB"])
def test_bad_memory_limit_is_refused_in_one_line(broker_sim, size):
    code, stdout, stderr = broker_sim("run", "--memory-limit", size)
    assert (code, stdout, stderr.count("\n")) == (2, "", 1)
    assert f"memory limit '{size}': pass bytes, or a size such as 512MB" in stderr


def test_log_says_in_json_what_the_brokers_do(running):
    process, _ = running("--brokers", "1", "--log-level", "info", "--log-format", "json")
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=TIMEOUT_S)
    events = [json.loads(line) for line in stderr.splitlines()]
    assert [event["event"] for event in events] == ["broker_registered", "broker_unfenced", "broker_started"]
    assert {event["logger"] for event in events} == {"broker_sim.controller", "broker_sim.broker"}


def redirected(redirection, *command):
    """Return a shell's words that run a command with its streams redirected."""
    return ["sh", "-c", f'exec "$@" {redirection}', "sh", *command]


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("arguments", "redirection", "message"),
    [
        (["run", "--brokers", "1"], ">&-", "broker-sim: stdout is closed"),
        (["run"], ">/dev/full", "broker-sim: cannot write the ready line to stdout: No space left on device"),
        (["--version"], ">/dev/full", "broker-sim: cannot write the output: No space left on device"),
    ],
)
def test_stdout_that_cannot_be_written_is_one_line_that_says_what_to_do(arguments, redirection, message, unbuffered):
    done = subprocess.run(
        redirected(redirection, *COMMAND, *arguments),
        stderr=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )
    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("redirection", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_standard_stream_is_no_socket_and_the_cluster_ends_cleanly(redirection):
    command = redirected(redirection, *COMMAND, "run", "--brokers", "1")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert json.loads(process.stdout.readline())["pid"] == process.pid
            files = [str(Path(f"/proc/{process.pid}/fd/{descriptor}").readlink()) for descriptor in (0, 2)]
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
    assert os.devnull in files
    assert not [file for file in files if file.startswith(("socket:", "anon_inode:"))]


@pytest.mark.parametrize("host", ["nope.invalid", "192.0.2.1"])
def test_host_of_another_machine_is_one_line(broker_sim, host):
    code, stdout, stderr = broker_sim("run", "--host", host)
    assert (code, stdout, stderr.count("\n")) == (1, "", 1)
    assert "the host must be an address of this machine" in stderr


def test_control_port_with_a_token_refuses_requests_without_it(running, broker_sim, monkeypatch):
    _, ready = running("--brokers", "1", "--control-token", "secret")
    monkeypatch.delenv("BROKER_SIM_CONTROL_TOKEN", raising=False)
    status = ("ctl", "--control", ready["control"], "status")
    code, _, stderr = broker_sim(*status)
    assert (code, stderr.count("\n")) == (1, 1)
    assert "BROKER_SIM_CONTROL_TOKEN" in stderr
    assert broker_sim(*status[:1], "--token", "secret", *status[1:])[0] == 0
    monkeypatch.setenv("BROKER_SIM_CONTROL_TOKEN", "secret")
    assert broker_sim(*status)[0] == 0


def test_token_is_read_from_a_file_and_told_nowhere(running, broker_sim, tmp_path):
    file = tmp_path / "token"
    for content, reason in (
        ("", "the file is empty; write the token into it"),
        ("sesame\nopen", "the token must be one non-empty word"),
        (None, "No such file or directory"),
    ):
        if content is not None:
            file.write_text(content)
        code, _, stderr = broker_sim("run", "--control-token-file", str(file))
        file.unlink(missing_ok=True)
        assert (code, reason in stderr, "sesame" in stderr) == (2, True, False)
    assert broker_sim("run", "--control-token", "")[0] == 2
    file.write_text("sesame\n")
    _, ready = running("--brokers", "1", "--control-token-file", str(file), "--log-level", "debug")
    assert broker_sim("ctl", "--control", ready["control"], "status")[0] == 1
    code, stdout, stderr = broker_sim("ctl", "--control", ready["control"], "--token", "sesame", "--json", "status")
    assert code == 0
    assert "sesame" not in f"{ready}{stdout}{stderr}"


class TestOpenFiles:
    LIMIT = 64

    def limited(self, *arguments):
        return ["sh", "-c", f'ulimit -n {self.LIMIT}; exec "$@"', "sh", *COMMAND, "run", *arguments]

    def test_too_many_brokers_are_one_line_with_the_remedy(self):
        done = subprocess.run(
            self.limited("--brokers", "60"), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert "ulimit -n" in done.stderr

    @pytest.mark.threads
    @pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
    def test_connections_wait_are_told_once_and_served_when_others_end(self, loop, tmp_path):
        if loop == "asyncio":
            (tmp_path / "uvloop.py").write_text("raise ImportError('hidden')")
        process = subprocess.Popen(
            self.limited("--brokers", "1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        with process, contextlib.ExitStack() as stack:
            stack.callback(process.kill)
            host, port = json.loads(process.stdout.readline())["bootstrap_servers"].split(":")
            connections = [
                stack.enter_context(socket.create_connection((host, int(port)), TIMEOUT_S))
                for _ in range(self.LIMIT + 6)
            ]
            told = process.stderr.readline()
            assert "connections_wait" in told
            assert "ulimit -n" in told
            tried_again_s = time.monotonic() + 4 * RETRY_DELAY_S
            while time.monotonic() < tried_again_s:
                connections[0].sendall(API_VERSIONS_REQUEST)
                assert connections[0].recv(65_536)
            for connection in connections[:-6]:
                connection.close()
            # The last ones came when no file was left.
            for connection in connections[-6:]:
                connection.sendall(API_VERSIONS_REQUEST)
                assert len(connection.recv(4)) == 4
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0
            assert process.stderr.read() == ""

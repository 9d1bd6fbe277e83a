"""The simulator's process: how it is driven, what it says when it fails, and that it always ends."""

import os
import select
import signal
import socket
import subprocess
import sys

import pytest
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.cluster_under_test.running_cluster import BROKERS, simulated_cluster
from broker_sim_integration.simulator.command import own_command
from broker_sim_integration.simulator.errors import SimulatorError
from broker_sim_integration.simulator.process import SimulatorProcess

pytestmark = pytest.mark.threads
TIMEOUT_S = 30


def started(*command, **configs):
    named = {key.replace("_", "."): value for key, value in configs.items()}
    return SimulatorProcess(command or own_command().arguments, brokers=BROKERS, configs=named)


def shell(script):
    """Return a command that runs `script` with the arguments of `broker-sim` as "$@"."""
    return "sh", "-c", script, "sh"


def states(simulator):
    return {one["id"]: one["state"] for one in simulator.control.get("/status")["brokers"]}


@pytest.fixture(scope="module")
def simulator():
    with started() as process:
        yield process


def test_brokers_are_reached_at_their_addresses(simulator):
    running = simulated_cluster(simulator)
    assert list(running.addresses) == [1, 2, 3]
    assert running.faults == set(Fault)
    for address in running.addresses.values():
        with socket.create_connection(address, timeout=TIMEOUT_S):
            pass


@pytest.mark.parametrize(
    ("fault", "undo", "state"), [("pause", "resume", "paused"), ("kill", "start", "dead"), ("stop", "start", "dead")]
)
def test_verbs_are_carried_out_by_the_process(fault, undo, state):
    with started(broker_session_timeout_ms="500", broker_heartbeat_interval_ms="100") as simulator:
        verbs = simulated_cluster(simulator).verbs
        before = states(simulator)
        getattr(verbs, fault)(2)
        assert states(simulator) == {**before, 2: state}
        getattr(verbs, undo)(2)
        assert states(simulator) == before


@pytest.mark.parametrize("cut", ["disconnect", "disconnect_clients"])
def test_a_cut_is_mended(simulator, cut):
    verbs = simulated_cluster(simulator).verbs
    before = simulator.control.get("/status")
    getattr(verbs, cut)(3)
    assert simulator.control.get("/status") != before
    getattr(verbs, cut.replace("dis", "re", 1))(3)


def test_start_returns_at_once_if_it_is_not_to_wait():
    # A killed broker serves again when its old session has ended.
    with started(broker_session_timeout_ms="60000") as simulator:
        running = simulated_cluster(simulator)
        running.verbs.kill(2)
        running.verbs.start(2, wait=False)
        assert states(simulator)[2] == "running"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(running.addresses[2])


def test_error_of_a_rejected_verb_has_the_reason(simulator):
    with pytest.raises(SimulatorError, match="broker 2 is running"):
        simulated_cluster(simulator).verbs.start(2)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("/nowhere/broker-sim",), r"cannot start /nowhere/broker-sim \(No such file"),
        (shell("echo early >&2; exit 3"), r"ended by itself \(exit code 3\); its log ends: early$"),
        (shell("kill -9 $$"), r"ended by itself \(SIGKILL\); it logged nothing"),
        (shell("echo hello; cat"), "sh is not a broker-sim: its first line is 'hello'"),
        (("true",), r"ended by itself \(exit code 0\)"),
    ],
)
def test_a_bad_command_is_one_line(command, reason):
    with pytest.raises(SimulatorError, match=reason) as failed, started(*command):
        pass
    assert "\n" not in str(failed.value)


def test_error_of_a_bad_configuration_is_that_of_the_simulator():
    with pytest.raises(SimulatorError, match=r"exit code 2.*num\.partitions"):
        started(num_partitions="-7").__enter__()


def test_error_of_a_port_in_use_is_that_of_the_simulator():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = shell(f'exec {" ".join(own_command().arguments)} "$@" --control-port {port}')
        reason = rf"exit code 1.*cannot listen on 127.0.0.1:{port}"
        with pytest.raises(SimulatorError, match=reason), started(*command):
            pass


def test_unexpected_end_is_reported_by_the_next_verb():
    with started() as simulator:
        verbs = simulated_cluster(simulator).verbs
        assert simulator.how_it_ended() is None
        end(simulator.pid)
        with pytest.raises(SimulatorError, match=r"ended by itself \(SIGKILL\)"):
            verbs.pause(1)


def test_error_of_the_other_side_is_no_error_of_the_simulator():
    with started() as simulator, pytest.raises(LookupError, match="theirs"), simulator.explain(LookupError):
        raise LookupError("theirs")


def test_a_process_that_does_not_end_is_killed(monkeypatch):
    monkeypatch.setattr("broker_sim_integration.simulator.process.STOP_TIMEOUT_S", 0.1)
    with started() as simulator:
        os.kill(simulator.pid, signal.SIGSTOP)
        watched = os.pidfd_open(simulator.pid)
    assert_ended(watched)


USER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # below nohup a process is started with it ignored
from broker_sim_integration.simulator.command import own_command
from broker_sim_integration.simulator.process import SimulatorProcess
with SimulatorProcess(own_command().arguments, brokers=1, configs={}) as simulator:
    print(simulator.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_process_that_started_it(number):
    user = subprocess.Popen(
        [sys.executable, "-c", USER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with user:
        watched = os.pidfd_open(int(user.stdout.readline()))
        user.send_signal(number)
        assert_ended(watched)
        assert user.wait(TIMEOUT_S) == -number


def end(pid):
    watched = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert_ended(watched)


def assert_ended(watched):
    """Wait until the process of a pidfd has ended; closes it."""
    try:
        assert select.select([watched], [], [], TIMEOUT_S)[0], "the simulator still runs"
    finally:
        os.close(watched)


def test_data_on_disk_is_removed_with_the_process():
    with started(log_dir="data", broker_session_timeout_ms="500") as simulator:
        verbs = simulated_cluster(simulator).verbs
        directory = simulator.log_directory(2)
        assert "meta.properties" in verbs.files.names(2)
        right = verbs.files.read(2, "meta.properties")
        verbs.stop(2)
        verbs.files.write(2, "meta.properties", right.replace(b"node.id=2", b"node.id=7"))
        assert not verbs.comes_up(2)
        verbs.files.write(2, "meta.properties", right)
        assert verbs.comes_up(2)
        assert states(simulator)[2] == "running"
    assert not directory.parent.exists()


def test_files_of_a_simulator_in_memory_are_refused(simulator):
    with pytest.raises(SimulatorError, match=r"in memory; configure log\.dir"):
        simulated_cluster(simulator).verbs.files.names(1)

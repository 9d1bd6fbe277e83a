"""Which simulator is compared, and why."""

import subprocess
import sys

import pytest
from broker_sim_integration.simulator.command import own_command, select_simulator

import broker_sim


def test_own_command_is_the_simulator_of_this_interpreter(tmp_path):
    python, flag, *_ = own_command().arguments
    show = [python, flag, "-c", "import broker_sim; print(broker_sim.__file__)"]
    shown = subprocess.run(show, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert show[0] == sys.executable
    assert shown.stdout.strip() == broker_sim.__file__


def test_a_command_is_taken_as_a_shell_takes_it():
    chosen = select_simulator("docker run 'my image'")
    assert chosen.arguments[:3] == ("docker", "run", "my image")
    assert str(chosen).startswith("docker run 'my image' run ")


@pytest.mark.parametrize("simulator", ["own", "docker run image"])
def test_simulated_cluster_is_of_the_release_that_is_compared(simulator):
    assert select_simulator(simulator, "4.3").arguments[-2:] == ("run", "--as-version=4.3")


def test_no_command_is_refused():
    with pytest.raises(ValueError, match="own or a command"):
        select_simulator(" ")

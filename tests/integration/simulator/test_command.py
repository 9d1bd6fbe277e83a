"""Which simulator is compared, and why."""

import shutil
import subprocess
import sys

import pytest
from broker_sim_integration.simulator.command import CHECKOUT, own_command, select_simulator

from broker_sim import compiled

PACKAGES = ("broker_sim", "purgatory")


@pytest.fixture
def checkout(tmp_path):
    """Return a copy of the sources with a native build of them, of which only the files are there."""
    installed = tmp_path / ".venv-compiled" / "lib" / "python3.11" / "site-packages"
    for package in PACKAGES:
        for root in (tmp_path, installed):
            shutil.copytree(CHECKOUT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    command = tmp_path / ".venv-compiled" / "bin" / "broker-sim"
    command.parent.mkdir()
    command.touch()
    return tmp_path


def test_own_command_is_the_simulator_of_this_interpreter(tmp_path):
    show = [*own_command().arguments[:-2], "-c", "import broker_sim; print(broker_sim.compiled)"]
    shown = subprocess.run(show, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert show[0] == sys.executable
    assert shown.stdout.strip() == str(compiled)


def test_auto_takes_the_native_build_of_the_same_sources(checkout):
    chosen = select_simulator("auto", checkout=checkout)
    assert chosen.arguments == (str(checkout / ".venv-compiled/bin/broker-sim"),)
    assert chosen.reason == "the native build in .venv-compiled"


@pytest.mark.parametrize("changed", ["purgatory/broker_sim_purgatory/clock.py", "broker_sim/protocol/schemas.jsonl"])
def test_auto_leaves_a_native_build_of_other_sources(checkout, changed):
    with (checkout / changed).open("a", encoding="utf-8") as source:
        source.write("\n")
    chosen = select_simulator("auto", checkout=checkout)
    assert chosen.arguments == own_command().arguments
    assert chosen.reason == ("of this Python; .venv-compiled was built from other sources: make compiled")


def test_auto_leaves_a_native_build_with_a_module_that_is_gone(checkout):
    (checkout / "purgatory/broker_sim_purgatory/loop_timer.py").unlink()
    assert select_simulator("auto", checkout=checkout).arguments == own_command().arguments


def test_auto_without_a_native_build_says_how_to_get_one(tmp_path):
    chosen = select_simulator("auto", checkout=tmp_path)
    assert chosen.arguments == own_command().arguments
    assert chosen.reason == "of this Python; a native build: make compiled"


def test_a_command_is_taken_as_a_shell_takes_it():
    chosen = select_simulator("docker run 'my image'")
    assert chosen.arguments == ("docker", "run", "my image")
    assert str(chosen) == "docker run 'my image'"


def test_no_command_is_refused():
    with pytest.raises(ValueError, match="auto, own or a command"):
        select_simulator(" ")

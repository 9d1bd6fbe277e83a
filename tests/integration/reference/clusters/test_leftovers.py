"""The next run removes what a killed run left behind, and nothing else."""

import subprocess
import sys

import pytest
from broker_sim_integration.reference.clusters.leftovers import make_run_directory, remove_leftovers

MAKE_DIRECTORY = "from broker_sim_integration.reference.clusters.leftovers import *; print(make_run_directory())"


@pytest.fixture(autouse=True)
def temporary_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def start_node(directory):
    """Start a process whose command line names a file in the directory, as a node's does.

    Waits for its first line of output: before that, /proc may not have its command line yet.
    """
    node = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()", f"{directory}/node.properties"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert node.stdout.readline() == b"\n"
    return node


def test_processes_of_a_dead_run_are_killed_and_its_directory_removed(temporary_directory):
    made = subprocess.run(
        [sys.executable, "-c", MAKE_DIRECTORY], capture_output=True, text=True, check=True
    ).stdout.strip()
    with start_node(made) as node:
        remove_leftovers()
        assert node.wait(60) == -9
    assert list(temporary_directory.iterdir()) == []


def test_live_run_keeps_its_processes_and_directory():
    directory = make_run_directory()
    with start_node(directory) as node:
        remove_leftovers()
        node.communicate(b"\n", timeout=60)
        assert node.returncode == 0
    assert directory.is_dir()


def test_directories_of_others_are_left_alone(temporary_directory):
    other = temporary_directory / "broker-sim-kafka-notes"
    other.mkdir()
    remove_leftovers()
    assert other.is_dir()

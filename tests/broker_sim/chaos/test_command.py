"""`broker-sim chaos`: many seeds, failures told once, continued where it was ended."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from broker_sim.chaos.search import NoSuchTestError, load_test

HERE = Path(__file__).parent


@pytest.fixture
def chaos(tmp_path):
    """Run the command beside the applications; returns the finished process."""

    def run(*arguments, code=0):
        command = [sys.executable, "-m", "broker_sim", "chaos", *arguments]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def test_failure_is_shrunk_told_and_repeated(chaos, tmp_path):
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
    again = chaos(wanted[0], "--schedule", str(schedule), code=1)
    assert f"trace {failure['digest'][:16]}" in again.stdout

    lines = results.read_text().splitlines()
    results.write_text("\n".join((*lines[:-1], lines[-1][:20])))
    continued = chaos(*wanted, "--results", str(results), "--no-shrink", code=1)
    assert "5 of them known" in continued.stderr
    assert continued.stdout.splitlines()[-1] == found.stdout.splitlines()[-1]
    other = chaos(*wanted[:-4], "--seeds", "9", "--workers", "3", "--results", str(results), code=2)
    assert "was written with other options" in other.stderr


def test_orders_are_explored_and_the_one_that_fails_repeats(chaos, tmp_path):
    told = tmp_path / "told.json"
    found = chaos("applications:hand_over", "--exhaustive", "--json", str(told), code=1)
    assert found.stdout.splitlines()[0] == "2 orders explored, the last of them fails"
    assert "1 deviation from first in, first out -> 1 deviation, in " in found.stdout
    (failure,) = json.loads(told.read_text())
    assert failure["repeats"]

    schedule = tmp_path / "schedule.txt"
    schedule.write_text("\n".join(failure["schedule"]))
    again = chaos("applications:hand_over", "--schedule", str(schedule), code=1)
    assert f"trace {failure['digest'][:16]}" in again.stdout


def test_orders_of_brokers_are_explored_too(chaos):
    found = chaos("applications:forget_a_broker", "--exhaustive-brokers", code=1)
    assert found.stdout.splitlines()[0] == "6 orders explored, the last of them fails"
    assert "2 deviations from first in, first out -> 2 deviations, in " in found.stdout
    assert "the controller hears broker 3 before broker 1" in found.stdout
    assert "s of virtual time, trace " in found.stdout
    assert ", repeats" in found.stdout


def test_wrong_usage_is_one_line(chaos):
    refused = chaos("applications:commit_last", "--faults", "explode", code=2)
    assert "there is no fault 'explode'" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("json", "name the test as MODULE:FUNCTION"),
        ("json:nothing", "the module has no 'nothing'"),
        ("no_such_module:test", "No module named 'no_such_module'"),
    ],
)
def test_test_that_is_not_there_is_told_in_one_line(monkeypatch, name, message):
    monkeypatch.syspath_prepend(str(HERE))
    with pytest.raises(NoSuchTestError, match=message):
        load_test(name)

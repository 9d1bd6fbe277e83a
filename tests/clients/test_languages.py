"""The suites of examples/languages, which the pages of other languages show: alone, under chaos, in virtual time."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.clients, pytest.mark.soak(part="clients")]

ROOT = Path(__file__).parents[2]
LANGUAGES = ROOT / "examples" / "languages"
TIMEOUT_S = 900
SUITES = {
    "java": {"program": "mvn", "package": "maven", "command": ["mvn", "-B", "-q", "test"]},
    "spring": {"program": "mvn", "package": "maven", "command": ["mvn", "-B", "-q", "test"]},
    "go": {"program": "go", "package": "golang-go", "command": ["go", "test", "-count=1", "./..."]},
    "node": {"program": "npm", "package": "npm", "command": ["npm", "test"]},
    "rust": {"program": "cargo", "package": "cargo", "command": ["cargo", "test", "-q"]},
}
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def run(tmp_path, find_program):
    """Return a function that runs words and the command of a language's suite, or of a part, in a copy of it."""

    def run(language, *before, part=()):
        suite = SUITES[language]
        find_program(suite["program"], suite["package"])
        copy = shutil.copytree(LANGUAGES / language, tmp_path / language, dirs_exist_ok=True)
        if language == "spring":  # the page of Java says to copy it
            extension = Path("src", "test", "java", "shop", "BrokerSim.java")
            shutil.copy(LANGUAGES / "java" / extension, copy / extension)
        if language == "node":
            subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=copy, check=True)
        return subprocess.run(
            [*before, *suite["command"], *part],
            cwd=copy,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    return run


@pytest.mark.parametrize("language", SUITES)
def test_suite_of_a_language_passes(run, language):
    done = run(language)
    assert done.returncode == 0, done.stdout + done.stderr


def test_suite_takes_the_cluster_of_chaos(run, tmp_path):
    schedule = tmp_path / "schedule.txt"
    schedule.write_text("seed=1 latency_ms=0 duration_ms=600000\n599000 pause broker-1 for=100\n")
    outcome = tmp_path / "outcome.json"
    options = ["--schedule", str(schedule), "--json", str(outcome)]
    chaos = [sys.executable, "-m", "broker_sim", "chaos", *options, "--"]
    done = run("go", *chaos, part=["-run", "TestOrderWaitsForEveryReplica"])  # there is no reset for a second one
    assert done.returncode == 0, done.stdout + done.stderr
    faults = [moment["what"] for moment in json.loads(outcome.read_text())["timeline"] if moment["who"] == "FAULT"]
    assert faults[0].startswith("the schedule begins"), "a client of the suite has come to the cluster of chaos"


@pytest.mark.parametrize(("language", "test"), [("java", "DeliveryTest"), ("spring", "OrdersTest")])
def test_suite_of_java_repeats_in_virtual_time(run, language, test):
    virtual = [sys.executable, "-m", "broker_sim", "run", "--virtual", "--seed", "7", "--topic", "orders:2:3", "--"]
    assert run(language, part=["-DskipTests"]).returncode == 0  # compiles
    runs = [run(language, *virtual, part=[f"-Dtest={test}"]) for _ in range(2)]
    for done in runs:
        assert done.returncode == 0, done.stdout + done.stderr
    first, second = (done.stderr.splitlines()[-1] for done in runs)
    assert first == second
    assert "of virtual time" in first

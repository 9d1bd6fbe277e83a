"""`broker-sim chaos -- COMMAND` with applications in Java, Go, Node, and one of a share group.

Each order is delivered; that of the share group bills some twice, and its mended twin none.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.clients, pytest.mark.soak(part="clients")]

EXAMPLES = Path(__file__).parents[2] / "examples" / "chaos_commands"
SCHEDULE = """
seed=7 latency_ms=20 duration_ms=20000
1450 transfer broker-2 value=1
14560 pause broker-1 for=3000
"""
MOVES = """
seed=1 duration_ms=12000
6000 transfer broker-1 value=0
6000 transfer broker-1 value=1
8000 transfer broker-2 value=0
8000 transfer broker-2 value=1
"""
"""Whoever leads the partitions, one of the moves is to another broker, while an order of each is in work."""
TIMEOUT_S = 300


@pytest.fixture
def program(tmp_path, find_program, find_go, kafka_class_path):
    """Return by language what makes its program ready, and returns how it is started."""

    def java():
        return ["java", "-cp", kafka_class_path(), str(EXAMPLES / "Deliver.java")]

    def go():
        built = tmp_path / "deliver"
        subprocess.run([find_go(), "build", "-buildvcs=false", "-o", str(built), "."], cwd=EXAMPLES / "go", check=True)
        return [str(built)]

    def node():
        npm = find_program("npm", "npm")
        copy = shutil.copytree(EXAMPLES / "node", tmp_path / "node")
        subprocess.run([npm, "install", "--no-audit", "--no-fund"], cwd=copy, check=True)
        return ["node", str(copy / "deliver.js")]

    return {"java": java, "go": go, "node": node}


@pytest.mark.parametrize("language", ["java", "go", "node"])
def test_each_order_is_delivered_while_brokers_fail(program, language, tmp_path):
    words = program[language]()
    told = tmp_path / "told.json"
    schedule = tmp_path / "schedule.txt"
    schedule.write_text(SCHEDULE)
    options = ["--schedule", schedule, "--topic", "orders:2:3"]
    done = subprocess.run(
        [sys.executable, "-m", "broker_sim", "chaos", *options, "--json", told, "--", *words],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 of 60 orders delivered" in done.stdout
    outcome = json.loads(told.read_text())
    assert outcome["faults_until_s"] < outcome["elapsed_s"]
    faults = [moment["what"] for moment in outcome["timeline"] if moment["who"] == "FAULT"]
    assert "pause broker-1 for 3 s" in faults
    assert faults[-1] == "all over, all replicas in sync"


@pytest.mark.parametrize(("arguments", "code"), [([], 1), (["--mended"], 0)])
def test_order_of_a_share_group_is_billed_again_when_its_leader_moves(tmp_path, arguments, code):
    schedule = tmp_path / "schedule.txt"
    schedule.write_text(MOVES)
    options = ["--schedule", schedule, "--topic", "orders:2:3"]
    program = [sys.executable, str(EXAMPLES / "share_billing.py"), *arguments]
    done = subprocess.run(
        [sys.executable, "-m", "broker_sim", "chaos", *options, "--", *program],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    billed, _, twice = done.stdout.rstrip().rpartition(", twice: ")
    assert billed.endswith("share group: 40 of 40 orders billed")
    assert (twice == "[]") == (code == 0)

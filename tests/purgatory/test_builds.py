"""The two builds of the purgatory, pure and native, are one program: same modules, same traces, hash for hash."""

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import broker_sim_purgatory as purgatory
import pytest

from broker_sim.chaos.random_run import draw_schedule, run_schedule

ROOT = Path(__file__).parents[2]
SEEDS = (1, 2, 3, 7)
DIGESTS = """
import json, sys
import broker_sim_purgatory
from broker_sim.chaos.random_run import draw_schedule, run_schedule
assert not broker_sim_purgatory.compiled
print(json.dumps([run_schedule(draw_schedule(int(seed))).digest for seed in sys.argv[1:]]))
"""


def native_modules():
    """Return hatch_build.MODULES; to import it would need the builder."""
    for node in ast.parse((ROOT / "hatch_build.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULES":
            return ast.literal_eval(node.value)
    raise AssertionError("hatch_build.py has no MODULES")


def test_build_is_native_in_all_listed_modules_or_in_none():
    modules = native_modules()
    assert sorted(set(modules)) == sorted(modules)
    origins = [find_spec(f"broker_sim_purgatory.{module}").origin for module in modules]
    assert {not origin.endswith(".py") for origin in origins} == {purgatory.compiled}


def test_programs_that_tests_start_are_of_this_build():
    program = "import broker_sim_purgatory; print(broker_sim_purgatory.__file__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == purgatory.__file__


@pytest.mark.skipif(not purgatory.compiled, reason="this is the pure build")
def test_same_seed_gives_the_same_trace_in_the_pure_build():
    pure = subprocess.run(
        [sys.executable, "-c", DIGESTS, *map(str, SEEDS)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "purgatory")},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert json.loads(pure.stdout) == [run_schedule(draw_schedule(seed)).digest for seed in SEEDS]

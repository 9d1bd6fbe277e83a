"""The two builds, pure and native, are one program: same modules, same traces, hash for hash."""

import ast
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import broker_sim_purgatory as purgatory

import broker_sim
from broker_sim.chaos.random_run import draw_schedule, run_schedule

ROOT = Path(__file__).parents[2]
SEEDS = (1, 2, 3, 7) if broker_sim.compiled else (7,)
DIGESTS = """
import json, sys
import broker_sim, purgatory
from broker_sim.chaos.random_run import draw_schedule, run_schedule
assert not broker_sim.compiled and not purgatory.compiled
seeds = map(int, sys.argv[1:])
print(json.dumps([run_schedule(draw_schedule(seed)).digest for seed in seeds]))
"""


def native_modules():
    """Return hatch_build.MODULES; to import it would need the builder."""
    for node in ast.parse((ROOT / "hatch_build.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULES":
            return ast.literal_eval(node.value)
    raise AssertionError("hatch_build.py has no MODULES")


def test_build_is_native_in_all_listed_modules_or_in_none():
    modules = native_modules()
    assert list(modules) == sorted(set(modules))
    are_native = {not find_spec(module).origin.endswith(".py") for module in modules}
    assert are_native == {broker_sim.compiled} == {purgatory.compiled}


def test_programs_that_tests_start_are_of_this_build():
    program = "import broker_sim; print(broker_sim.__file__)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == broker_sim.__file__


def test_same_seed_gives_the_same_trace_in_this_build_and_in_a_pure_one(tmp_path):
    for package in (broker_sim, purgatory):
        source = Path(package.__file__).parent
        shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("*.so"))
    pure = subprocess.run(
        [sys.executable, "-P", "-c", DIGESTS, *map(str, SEEDS)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert pure.returncode == 0, pure.stderr
    here = [run_schedule(draw_schedule(seed)).digest for seed in SEEDS]
    assert here == json.loads(pure.stdout)

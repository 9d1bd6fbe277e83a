"""Every suite of the benchmarks runs to its end and finds figures of the simulator."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
SUITES = sorted(path.stem.removeprefix("bench_") for path in BENCH.glob("bench_*.py"))
SPARK_SUITES = {"pipeline"}
TIMEOUT_S = 180

pytestmark = pytest.mark.threads
ON_SPARK = [pytest.mark.spark, pytest.mark.soak(part="spark")]


@pytest.mark.parametrize(
    "suite", [pytest.param(suite, marks=ON_SPARK if suite in SPARK_SUITES else []) for suite in SUITES]
)
def test_tiny_run_of_a_suite_finds_figures(suite, tmp_path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(BENCH / "run.py"), "--tiny", suite, "--json", str(figures)]
    # The suites import each other from their folder, also where tests run what is installed.
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONSAFEPATH"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            printed, errors = process.communicate(timeout=TIMEOUT_S)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    assert "its figures say nothing" in printed.splitlines()[0]
    found = json.loads(figures.read_text())
    assert found["tiny"]
    assert any("simulator" in metric["values"] for metric in found["metrics"])

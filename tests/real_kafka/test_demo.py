"""The demo's scenarios on a real Kafka and on the simulator, both judged as `make demo` does."""

import os
import subprocess
import sys

import pytest

TIMEOUT_S = 400
DEMO = "from broker_sim_integration.cli import main; main()"


@pytest.mark.threads
def test_demo_agrees_with_kafka(tmp_path):
    reference = os.environ.get("REQUIRE_REAL_KAFKA") or "auto"
    done = subprocess.run(
        [sys.executable, "-c", DEMO, "--demo", "--reference", reference, "--out", tmp_path],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

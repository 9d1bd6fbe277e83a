"""A compose program, and how projects are started with it."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPOSE_TIMEOUT_S = 300


@pytest.fixture(scope="module")
def compose_program(require_or_skip):
    for program in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(program[0]):
            asked = subprocess.run([*program, "version"], capture_output=True, timeout=60, check=False)
            if asked.returncode == 0:
                return program
    return require_or_skip(
        "no compose program: apt-get install -y --no-install-recommends docker-compose", needs_containers=True
    )


@pytest.fixture(scope="module")
def compose_project(compose_program):
    """Return a context of (environment, services): docker-compose.yml runs them meanwhile.

    It gives a function that runs the compose program with further arguments and returns its output.
    """

    @contextmanager
    def run_project(environment, *services):
        project = f"broker-sim-{os.getpid()}"

        def compose(*arguments):
            done = subprocess.run(
                [*compose_program, "-p", project, *arguments],
                cwd=ROOT,
                env=os.environ | environment,
                capture_output=True,
                text=True,
                timeout=COMPOSE_TIMEOUT_S,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        try:
            compose("up", "-d", *services)
            yield compose
        finally:
            compose("down", "-v", "-t", "1", "--rmi", "local")

    return run_project

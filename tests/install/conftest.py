"""The wheels in fresh environments, beside a user's own `integration` and PyPI's `purgatory`."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALL_TIMEOUT_S = 900
COMMAND_TIMEOUT_S = 600
OURS = ("BROKER_SIM_", "PYTHON", "COVERAGE")

PROJECT = {
    "integration/__init__.py": 'OWNER = "the user"\n',
    "integration/orders.py": "def total(prices):\n    return sum(prices)\n",
    "integration/test_orders.py": """
import integration
import purgatory
import pytest
from broker_sim.purgatory import VirtualTimer
from integration.orders import total


def test_packages_of_the_user_are_found():
    assert integration.OWNER == "the user"
    assert total([1, 2]) == 3
    assert purgatory.AsyncCircuitBreakerFactory
    assert not hasattr(purgatory, "VirtualTimer")
    assert VirtualTimer().placements() == []


@pytest.mark.virtual_time(seeds=2)
async def test_cluster_in_virtual_time(kafka):
    await kafka.create_topic("orders", partitions=1, replication_factor=3)
    assert kafka.leader("orders") in kafka.isr("orders")


@pytest.mark.kafka(topics=["orders:1:3"])
def test_cluster_in_real_time_of_the_plugin_that_loads_by_itself(kafka, pytestconfig):
    loaded = pytestconfig.pluginmanager.list_plugin_distinfo()
    assert "broker-sim" in [distribution.project_name for _, distribution in loaded]
    assert kafka.produce("orders", "x").offset == 0
""",
    "conftest.py": 'pytest_plugins = ["broker_sim.testing.pytest_plugin"]\n',
}


@dataclass(frozen=True)
class Environment:
    """A Python with a wheel in it, and a project of a user in its working directory."""

    directory: Path
    project: Path

    def run(self, program, *arguments, **more):
        """Run a program of the environment in the project; returns what subprocess.run does."""
        return subprocess.run(
            [self.directory / "bin" / program, *map(str, arguments)],
            cwd=self.project,
            env=self.variables(),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
            **more,
        )

    def start(self, program, *arguments):
        """Start a program of the environment; its stdout is a pipe."""
        return subprocess.Popen(
            [self.directory / "bin" / program, *map(str, arguments)],
            cwd=self.project,
            env=self.variables(),
            stdout=subprocess.PIPE,
            text=True,
        )

    def add(self, *requirements):
        """Install packages, of the versions that this project is tested with."""
        self._pip("install", "--no-compile", "-c", ROOT / "constraints.txt", *requirements)

    def remove(self, *packages):
        """Uninstall packages."""
        if packages:
            self._pip("uninstall", "--yes", *packages)

    def check(self):
        """Fail unless what is installed has what it requires."""
        self._pip("check")

    def packages(self):
        """Return the names of the packages that are installed."""
        return {entry["name"] for entry in json.loads(self._pip("list", "--format", "json"))}

    def _pip(self, verb, *arguments):
        python = self.directory / "bin" / "python"
        done = subprocess.run(
            [sys.executable, "-m", "pip", "--python", python, verb, *arguments],
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def variables(self):
        """Return the environment variables: the user's, without what steers this project."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
        return {**kept, "PATH": f"{self.directory / 'bin'}:{kept['PATH']}", "COLUMNS": "200"}


def _build_wheel(directory, source, **switches):
    """Build a wheel of a folder or an archive with the build's environment variables; returns its path."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
    built = subprocess.run(
        [*command, "--wheel-dir", directory, source],
        env=kept | switches,
        capture_output=True,
        text=True,
        timeout=2 * INSTALL_TIMEOUT_S,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = Path(directory).glob("*.whl")
    return wheel


def _install(directory, python, *requirements):
    """Make an environment with the wheels, pytest, and PyPI's `purgatory`."""
    environment = Environment(directory / "venv", directory / "project")
    for name, text in PROJECT.items():
        (environment.project / name).parent.mkdir(parents=True, exist_ok=True)
        (environment.project / name).write_text(text)
    command = [python, "-m", "venv", "--without-pip", environment.directory]
    subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S)
    environment.add(*requirements, "pytest", "purgatory")
    return environment


@pytest.fixture(scope="session")
def install():
    """Return a function of a directory, a Python and wheels: it makes an `Environment`."""
    return _install


@pytest.fixture(scope="session")
def build_wheel(package_index):
    """Return a function of a directory and a folder or archive: it builds a wheel there."""
    return _build_wheel


@pytest.fixture(scope="session")
def wheel(build_wheel, tmp_path_factory):
    """Give the wheel of broker-sim."""
    return build_wheel(tmp_path_factory.mktemp("wheel"), ROOT)


@pytest.fixture(scope="session")
def compare_wheel(build_wheel, tmp_path_factory):
    """Give the wheel of broker-sim-compare."""
    return build_wheel(tmp_path_factory.mktemp("compare_wheel"), ROOT / "integration")


@pytest.fixture(scope="session")
def native_wheel(build_wheel, tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("native"), ROOT, BROKER_SIM_COMPILE="1")


@pytest.fixture
def run_suite(tmp_path):
    """Return a function that runs a suite of the examples on two workers, and returns its last line."""

    def run(environment, name, *packages):
        environment.add("pytest-xdist", *packages)
        project = shutil.copytree(ROOT / "examples" / "suites", tmp_path / "suites")
        done = replace(environment, project=project).run(
            *("python", "-m", "pytest", "-q", "-W", "error", "-n", "2", f"test_{name}.py")
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()[-1]

    return run

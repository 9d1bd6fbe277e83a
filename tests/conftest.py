"""Fixtures of all tests: a real Kafka, and one rule for what is missing on this machine.

Without `REQUIRE_REAL_KAFKA` a test is skipped, in one line, when what it needs is missing. With
`REQUIRE_REAL_KAFKA=containers` or `=jvm`, as in the checks of every change, it fails instead.
"""

from __future__ import annotations

import gc
import itertools
import os
import runpy
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from broker_sim_integration.comparison.runs import Configs, Run, Runner
    from broker_sim_integration.comparison.verdict import ScenarioResult
    from broker_sim_integration.reference.clusters.cluster import ReferenceCluster
    from broker_sim_integration.scenarios.scenario import Scenario

pytest_plugins = ["broker_sim.testing.pytest_plugin"]
INDEX_TIMEOUT_S = 900
DUMP_TIMEOUT_S = 120
SPARK_TESTS = "tests/integration/pipeline/"
LONGEST = (
    SPARK_TESTS,
    "tests/real_kafka/",
    "tests/documents/",
    "tests/tools/test_benchmarks.py",
    "tests/install/",
    "tests/clients/",
    "tests/broker_sim/testing/",
    "tests/broker_sim/cli/",
    "tests/broker_sim/chaos/",
)
"""What takes longest begins first, so that all processors have work until the end."""
SOAK = Path(__file__).parents[1] / "tools" / "soak" / "parts.py"
REQUIRED = os.environ.get("REQUIRE_REAL_KAFKA", "")

# The time that an example takes depends on the machine. Everything else is hypothesis' default: with
# CI=true the same examples every time, else new ones.
settings.register_profile(
    "any-machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("any-machine")


def pytest_configure() -> None:
    if REQUIRED not in {"", "containers", "jvm"}:
        raise pytest.UsageError(f"REQUIRE_REAL_KAFKA={REQUIRED}: choose containers or jvm")
    # A run that `timeout` ends closes its fixtures too, and with them the brokers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.flags.safe_path:
        # `python -P` tests what is installed and not what is in this directory; so do its programs.
        os.environ["PYTHONSAFEPATH"] = "1"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect the tests without garbage collections, which would find nothing and take a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marks = [mark for item in items for mark in item.iter_markers("soak")]
    parts = runpy.run_path(str(SOAK))["PARTS"] if marks else {}
    for mark in marks:
        if mark.args or mark.kwargs.get("part") not in parts:
            raise pytest.UsageError(f"{mark}: name a part of tools/soak/parts.py: {sorted(parts)}")
    items.sort(key=_longest_first)


def _longest_first(item: pytest.Item) -> int:
    found = (place for place, path in enumerate(LONGEST) if item.nodeid.startswith(path))
    return next(found, len(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker whole files, and one of them all that shares a Spark session."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(SPARK_TESTS):
                return SPARK_TESTS
            return str(super()._split_scope(nodeid))

    return ByFile(config, log)


def _fail_or_skip(reason: str, *, needs_containers: bool = False) -> NoReturn:
    if REQUIRED == "containers" or (REQUIRED and not needs_containers):
        pytest.fail(f"REQUIRE_REAL_KAFKA={REQUIRED}, but {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def collects_little() -> Iterator[None]:
    """Let collections pass over what there was before: all tests of a session take half a second each."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def require_or_skip() -> Callable[..., NoReturn]:
    """Call it with what is missing: fails where a real Kafka is required, skips elsewhere.

    `needs_containers=True` is for a test that a Kafka of local processes does not help.
    """
    return _fail_or_skip


@pytest.fixture(scope="session")
def kafka_class_files() -> Path:
    """Give the directory of Kafka's jars, for a program in Java; without Java or them the test fails or is skipped."""
    from broker_sim_integration.reference.jars import KAFKA_VERSION

    return _class_files(KAFKA_VERSION)


@pytest.fixture(scope="session")
def newest_kafka_class_files() -> Path:
    """Give the jars of the Kafka whose message definitions the codec has, as `kafka_class_files` does."""
    from tools.update_schemas import DEFAULT_VERSION

    return _class_files(DEFAULT_VERSION)


def _class_files(version: str) -> Path:
    from broker_sim_integration.reference.errors import ReferenceUnavailableError
    from broker_sim_integration.reference.jars import kafka_jars

    if shutil.which("java") is None:
        _fail_or_skip("Java is missing: apt-get install -y --no-install-recommends default-jdk-headless")
    try:
        return kafka_jars(version=version)
    except ReferenceUnavailableError as unavailable:
        _fail_or_skip(str(unavailable))


@pytest.fixture(scope="session")
def dump() -> Callable[..., str]:
    """Return a function that runs Kafka's `DumpLogSegments` on files and returns what it prints."""
    from broker_sim_integration.reference.clusters.jvm import find_java
    from broker_sim_integration.reference.errors import ReferenceUnavailableError
    from broker_sim_integration.reference.jars import kafka_jars

    try:
        java, jars = find_java(), kafka_jars("kafka-tools")
    except ReferenceUnavailableError as unavailable:
        _fail_or_skip(str(unavailable))

    def run(*options: str) -> str:
        done = subprocess.run(
            [java, "-cp", f"{jars}/*", "org.apache.kafka.tools.DumpLogSegments", *options],
            capture_output=True,
            text=True,
            timeout=DUMP_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def running_real_kafka() -> Iterator[ReferenceCluster]:
    from broker_sim_integration.reference.errors import ReferenceUnavailableError
    from broker_sim_integration.reference.progress import to_stderr
    from broker_sim_integration.reference.selection import ReferenceKind, select_reference

    selection = select_reference(REQUIRED or "auto", make_image=False)
    if selection.kind is ReferenceKind.RECORDED:
        _fail_or_skip(selection.reason)
    try:
        cluster = selection.cluster(progress=to_stderr)
        cluster.open()
    except ReferenceUnavailableError as unavailable:
        _fail_or_skip(str(unavailable))
    yield cluster
    cluster.close()


@pytest.fixture
def real_kafka(running_real_kafka) -> ReferenceCluster:
    """Three real brokers, all running and connected; all tests of the session share them.

    A test ends the faults that it causes, and creates topics under names of its own.
    """
    running_real_kafka.wait_for_brokers(set(running_real_kafka.broker_ids))
    return running_real_kafka


class OpenSide:
    """A side of a comparison whose cluster runs already; each has topics of its own."""

    def __init__(self, runner: Runner, first_repeat: int) -> None:
        self.name = "open"
        self._runner = runner
        self._first_repeat = first_repeat

    def open(self, configs: Configs) -> AbstractContextManager[Runner]:
        del configs
        return nullcontext(self)

    def run(self, scenario: Scenario, repeat: int) -> Run:
        return self._runner.run(scenario, self._first_repeat + repeat)


@pytest.fixture(scope="session")
def play() -> Iterator[Callable[[Scenario, Runner, Runner], ScenarioResult]]:
    """Plays a scenario on two running clusters: `play(scenario, kafka, sim)` gives the result.

    As in a comparison it is played again while only the time differs. Several tests can play it on
    the same brokers.
    """
    from broker_sim_integration.comparison.both_sides import compare_sides
    from broker_sim_integration.comparison.differences import read_known_differences
    from broker_sim_integration.comparison.machine import ControlTimer

    first_repeats = itertools.count(100, 10)
    known = read_known_differences()
    with ControlTimer() as control:

        def play(scenario: Scenario, kafka: Runner, sim: Runner) -> ScenarioResult:
            first_repeat = next(first_repeats)
            (result,) = compare_sides(
                OpenSide(kafka, first_repeat),
                OpenSide(sim, first_repeat),
                [scenario],
                repeats=1,
                known=known,
                on_result=lambda _: None,
                control=control,
            )
            return result

        yield play


@pytest.fixture(scope="session")
def package_index(tmp_path_factory):
    """Skip, with the remedy, where pip finds no packages; fail in the checks of every change."""
    directory = tmp_path_factory.mktemp("download")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    asked = subprocess.run(
        [*command, "--dest", directory, "hatchling"], capture_output=True, timeout=INDEX_TIMEOUT_S, check=False
    )
    if asked.returncode != 0:
        reason = "pip finds no package index: set PIP_INDEX_URL to one that answers"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

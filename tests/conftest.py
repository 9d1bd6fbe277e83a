"""Fixtures of all tests: a real Kafka, and one rule for what is missing on this machine.

Without `REQUIRE_REAL_KAFKA` a test is skipped, in one line, when what it needs is missing. With
`REQUIRE_REAL_KAFKA=containers` or `=jvm`, as in the checks of every change, it fails instead.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from integration.comparison.runs import Configs, Run, Runner
    from integration.comparison.verdict import ScenarioResult
    from integration.reference.clusters.cluster import ReferenceCluster
    from integration.scenarios.scenario import Scenario

pytest_plugins = ["broker_sim.testing.pytest_plugin"]
INDEX_TIMEOUT_S = 900
REQUIRED = os.environ.get("REQUIRE_REAL_KAFKA", "")

# The time that an example takes depends on the machine. Everything else is hypothesis' default: with
# CI=true the same examples every time, else new ones.
settings.register_profile(
    "any-machine",
    settings(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
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


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keep the exit status beside the tests that failed, for `tools.second_try`."""
    cache = getattr(session.config, "cache", None)  # -p no:cacheprovider
    if cache is not None:
        cache.set("broker_sim/exit_status", int(exitstatus))
        in_real_time = [item.nodeid for item in session.items if item.get_closest_marker("threads")]
        cache.set("broker_sim/in_real_time", in_real_time)


def _fail_or_skip(reason: str, *, needs_containers: bool = False) -> NoReturn:
    if REQUIRED == "containers" or (REQUIRED and not needs_containers):
        pytest.fail(f"REQUIRE_REAL_KAFKA={REQUIRED}, but {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def require_or_skip() -> Callable[..., NoReturn]:
    """Call it with what is missing: fails where a real Kafka is required, skips elsewhere.

    `needs_containers=True` is for a test that a Kafka of local processes does not help.
    """
    return _fail_or_skip


@pytest.fixture(scope="session")
def running_real_kafka() -> Iterator[ReferenceCluster]:
    from integration.reference.errors import ReferenceUnavailableError
    from integration.reference.progress import to_stderr
    from integration.reference.selection import ReferenceKind, select_reference

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
    from integration.comparison.both_sides import compare_sides
    from integration.comparison.differences import read_known_differences
    from integration.comparison.machine import ControlTimer

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
        [*command, "--dest", directory, "hatchling"],
        capture_output=True,
        timeout=INDEX_TIMEOUT_S,
        check=False,
    )
    if asked.returncode != 0:
        reason = "pip finds no package index: set PIP_INDEX_URL to one that answers"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

"""A pytest plugin: async tests in virtual time with a Kafka cluster, once per seed.

    @pytest.mark.virtual_time(seeds=20, order="seeded", latency_ms=(0.1, 5))
    async def test_orders(kafka):
        await kafka.create_topic("orders", partitions=1, replication_factor=3)

Load it with `pytest_plugins = ["broker_sim.testing.pytest_plugin"]` in the topmost conftest.py, or
with `-p broker_sim.testing.pytest_plugin`. From then on the clocks of the standard library look at
who asks: modules of the application that are imported later get them, in virtual and in real time.
"""

from __future__ import annotations

import argparse
import inspect
import os
import shlex
import unittest
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import pytest

from broker_sim.runtime.virtual.errors import (
    VirtualDeadlockError,
    VirtualLivelockError,
    VirtualTimeLimitError,
)
from broker_sim.runtime.virtual.stdlib import install, pinned_hash_seed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.testing.options import VirtualTimeOptions

MARKER: Final = "virtual_time"
SIGNATURE: Final = (
    f"{MARKER}(seeds=1, order='fifo', latency_ms=0, limit_s=86400, trace_steps=False, brokers=3, "
    "configs=None, broker_configs=None, as_version=None, check_invariants=True): run this async test "
    "in virtual time, once per seed; the fixture `kafka` is its cluster"
)

install()


class _VirtualTest(NamedTuple):
    function: Any
    options: VirtualTimeOptions


_test_of_item = pytest.StashKey[_VirtualTest]()


class _ClusterOfTheRun:
    """What the fixture `kafka` returns; the test itself gets the cluster of its run instead."""

    def __getattr__(self, name: str) -> NoReturn:
        __tracebackhide__ = True
        raise RuntimeError(
            f"kafka.{name}: the cluster exists while the test runs, so fixtures cannot use it"
        )


# -- options and marker ---------------------------------------------------------------------------


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: give at least 1")
    return value


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--virtual-seed` and `--virtual-seeds`."""
    group = parser.getgroup("virtual time")
    group.addoption(
        "--virtual-seed", type=int, metavar="N", help="run tests in virtual time with seed N only"
    )
    group.addoption(
        "--virtual-seeds",
        type=_count,
        metavar="COUNT",
        help="run tests in virtual time with COUNT seeds, whatever their markers say",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Tell the marker to pytest."""
    config.addinivalue_line("markers", SIGNATURE)
    if config.getoption("virtual_seed") is not None and config.getoption("virtual_seeds"):
        raise pytest.UsageError("give --virtual-seed or --virtual-seeds, not both")


# -- one test -------------------------------------------------------------------------------------


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> object:
    """Give the test its cluster: a running `SimulatedCluster`, a new one for each seed.

    It has the verbs of `AsyncCluster`, `bootstrap_servers`, and `leader`, `followers`, `isr` and
    `high_watermark` of a topic. Verbs that wait are awaited.
    """
    if request.node.get_closest_marker(MARKER) is None:
        _fail(f"{request.node.name}: the fixture kafka needs @pytest.mark.{MARKER}")
    return _ClusterOfTheRun()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check the marker; what is wrong with it is the error of the test, in one line."""
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return
    # Imported with the first such test: other runs of pytest start as fast as without the plugin.
    from broker_sim.testing.options import (  # noqa: PLC0415 - see above
        BadOptionError,
        VirtualTimeOptions,
    )

    if not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(item.obj):
        _fail(f"{item.name}: @pytest.mark.{MARKER} is for tests written with async def")
    if item.cls is not None and issubclass(item.cls, unittest.TestCase):
        _fail(f"{item.name}: @pytest.mark.{MARKER} does not work in a unittest.TestCase")
    try:
        options = VirtualTimeOptions.from_marker(marker.args, marker.kwargs)
    except BadOptionError as error:
        wrong = f"{item.name}: @pytest.mark.{MARKER}: {error}"
    else:
        item.stash[_test_of_item] = _VirtualTest(item.obj, options)
        return
    _fail(wrong)  # out here the report is this line, and not the error's own too


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked test with its seeds, until one fails."""
    __tracebackhide__ = True
    test = pyfuncitem.stash.get(_test_of_item, None)
    if test is None:
        return None
    from broker_sim.testing.seeded_run import run_with_seed  # noqa: PLC0415 - as above

    names = pyfuncitem._fixtureinfo.argnames  # noqa: SLF001 - as pytest's own call of a test
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    wanted = [name for name in names if isinstance(arguments[name], _ClusterOfTheRun)]
    for passed, seed in enumerate(_seeds(pyfuncitem.config, test.options)):
        try:
            run_with_seed(test.function, arguments, wanted, test.options, seed)
        except pytest.skip.Exception as skipped:
            skipped.__notes__ = []  # they would be part of the reason
            raise
        except (VirtualDeadlockError, VirtualLivelockError, VirtualTimeLimitError) as error:
            error.add_note(_how_to_repeat(pyfuncitem, seed, passed))
            raise error.with_traceback(None) from None  # the loop's; the text says where tasks wait
        except BaseException as error:
            error.add_note(_how_to_repeat(pyfuncitem, seed, passed))
            raise
    return True


def _seeds(config: pytest.Config, options: VirtualTimeOptions) -> Iterable[int]:
    only: int | None = config.getoption("virtual_seed")
    return range(config.getoption("virtual_seeds") or options.seeds) if only is None else (only,)


def _how_to_repeat(item: pytest.Function, seed: int, passed: int) -> str:
    """Return the command that runs the test alone with this seed, and whether it must fail again."""
    config = item.config
    hash_seed = pinned_hash_seed()
    plugin = f"-p {__name__} " if __name__ in config.getoption("plugins") else ""
    # A node id begins at the root directory; the command is typed where this one was.
    file = os.path.relpath(item.path, config.invocation_params.dir)
    node_id = shlex.quote(f"{file}::{item.nodeid.partition('::')[2]}")
    lines = [
        f"seed {seed} failed, {passed} before it passed; repeat it alone:",
        f"  PYTHONHASHSEED={hash_seed or 0} pytest {plugin}{node_id} --virtual-seed={seed}",
    ]
    if hash_seed is None:
        lines.append(
            "PYTHONHASHSEED was not set in this run. If the program iterates sets of strings, the\n"
            "command may take another course; set it for all tests to make every failure repeat."
        )
    return "\n".join(lines)


def _fail(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)

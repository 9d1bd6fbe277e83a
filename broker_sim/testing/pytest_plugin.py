"""A pytest plugin: async tests in virtual time with a Kafka cluster, once per seed.

    @pytest.mark.virtual_time(seeds=20, order="seeded", latency_ms=(0.1, 5))
    async def test_orders(kafka):
        await kafka.create_topic("orders", partitions=1, replication_factor=3)

Load it with `pytest_plugins = ["broker_sim.testing.pytest_plugin"]` in the topmost conftest.py, or
with `-p broker_sim.testing.pytest_plugin`. From then on the standard library's clocks return virtual time to code in
virtual time, and real time to all other code; modules of the application must be imported after the plugin.
"""

from __future__ import annotations

import argparse
import inspect
import re
import unittest
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from broker_sim.runtime.virtual import VirtualDeadlockError, VirtualLivelockError, VirtualTimeLimitError, install
from broker_sim.testing import CHAOS_MARKER, INSIDE_PLUGIN, PDB_ADVICE, VIRTUAL_MARKER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.chaos import Chaos
    from broker_sim.chaos.run import Outcome, ScheduledRun
    from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
    from broker_sim.runtime.virtual.task_order import Deviation
    from broker_sim.testing.chaos_tests import Begin
    from broker_sim.testing.seeded_run import SeededRun

EXPLORED: Final = "orders_explored"
"""Name of the report property with the number of orders that were run."""
SEEN: Final = "seen"
"""Name of the report property with the number of effective faults and the sightings of the seeds."""
_ERRORS_OF_THE_RUN: Final = (VirtualDeadlockError, VirtualLivelockError, VirtualTimeLimitError)
_PLUGINS: Final = {"broker_sim", "pytest_asyncio"}
"""Packages whose fixtures are not moved to the virtual loop."""

pytest_plugins = ["broker_sim.testing.kafka_plugin"]  # in case plugins are not loaded automatically

install()


class _VirtualTest:
    """The current run of a marked test, kept in the test's stash."""

    def __init__(self, function: Any, run: SeededRun | ScheduledRun, seed: int, passed: int) -> None:
        self.function = function
        self.run = run
        self.seed = seed
        self.passed = passed
        """Number of seeds that passed before this one."""
        self.error: BaseException | None = None
        """The first error of the seed."""

    @property
    def has_failed(self) -> bool:
        return self.error is not None


_test_of_item = pytest.StashKey[_VirtualTest | None]()
_seed_of_item = pytest.StashKey[tuple[int, int]]()
_order_of_item = pytest.StashKey["Sequence[Deviation] | None"]()
_records_of_item = pytest.StashKey[bool]()
_begin_of_item = pytest.StashKey["Begin"]()


# -- options and marker ---------------------------------------------------------------------------


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: pass at least 1")
    return value


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--virtual-seed`, `--virtual-seeds`, `--virtual-shrink`, `--kafka-page` and `--kafka-link`."""
    group = parser.getgroup("virtual time")
    group.addoption("--virtual-seed", type=int, metavar="N", help="run tests in virtual time with seed N only")
    group.addoption(
        "--virtual-seeds",
        type=_count,
        metavar="COUNT",
        help="run tests in virtual time with COUNT seeds, whatever their markers say",
    )
    group.addoption(
        "--virtual-shrink",
        action="store_true",
        help="after a failure with order='seeded', find the fewest order deviations that make it fail",
    )
    group.addoption(
        "--kafka-page",
        type=Path,
        nargs="?",
        const=Path("kafka-pages"),
        metavar="DIRECTORY",
        help="write each failing run of a test in virtual time or under chaos to an HTML file in this directory "
        "[kafka-pages], which plays it in a browser",
    )
    group.addoption(
        "--kafka-link",
        metavar="URL",
        help="print for each failing test under chaos a link that opens it in the playground at this address",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse options that exclude each other."""
    if config.getoption("virtual_seed") is not None and config.getoption("virtual_seeds"):
        raise pytest.UsageError("pass --virtual-seed or --virtual-seeds, not both")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of orders of exhaustive tests that passed, and the sightings of other chaos tests."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                for name, text in report.user_properties:
                    if name in {EXPLORED, SEEN}:
                        terminalreporter.write_line(f"{report.nodeid}: {text}")


# -- one test, seed by seed -------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Set up, call and tear down a marked test with each of its seeds, until one fails."""
    marker = item.get_closest_marker(VIRTUAL_MARKER)
    under_chaos = item.get_closest_marker(CHAOS_MARKER)
    if (marker is None and under_chaos is None) or _inside(item.config) is not None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = _run_seeds(item, marker, nextitem) if marker else _run_chaos(item, nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _run_seeds(item: pytest.Item, marker: pytest.Mark, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Run a test with each of its seeds until one fails; return the reports of the last run."""
    seeds = _seeds(item.config, marker.kwargs.get("seeds", 1))
    reports: list[pytest.TestReport] = []
    next_one: Any = nextitem
    item.stash[_order_of_item] = None
    item.stash[_records_of_item] = False
    for passed, seed in enumerate(seeds):
        item.stash[_seed_of_item] = seed, passed
        # Before the last seed only fixtures of function scope are torn down.
        next_one = nextitem if passed + 1 == len(seeds) else item.parent
        reports = _run_once(item, next_one)
        if not _has_passed(item, reports):
            if item.config.getoption("virtual_shrink") and not _runs_in_a_program(item):
                next_one, reports = item.parent, _shrink_order(item, reports)
            if (file := _page_file(item)) is not None and any(report.failed for report in reports):
                next_one = item.parent
                _write_page(item, reports, file)
            break
        _forget_run(item)
    if next_one is not nextitem:
        reports += _tear_down_the_rest(item, nextitem)
    return reports


def _runs_in_a_program(item: pytest.Item) -> bool:
    """Whether the test is written with `def`, and so runs in a process of its own."""
    return (
        isinstance(item, pytest.Function)
        and not inspect.iscoroutinefunction(item.obj)
        and not (item.cls is not None and issubclass(item.cls, unittest.TestCase))
    )


def _run_once(item: pytest.Item, nextitem: Any) -> list[pytest.TestReport]:
    """Run a test with one seed, with its fixtures on the loop, or in a process of its own; return its reports."""
    if not _runs_in_a_program(item):
        return runtestprotocol(item, log=False, nextitem=nextitem)
    from broker_sim.testing.seeded_run import how_to_repeat  # noqa: PLC0415 - see _checked
    from broker_sim.testing.tests_in_programs import ProcessRun, refusal  # noqa: PLC0415 - see _checked

    under_chaos = item.get_closest_marker(CHAOS_MARKER) is not None
    item.stash[_test_of_item] = None
    try:
        if item.config.getoption("usepdb") or item.config.getoption("trace"):
            _fail(f"{item.name}: {PDB_ADVICE}")
        test = item.stash[_test_of_item] = _under_chaos(item) if under_chaos else _checked(item)
    except pytest.fail.Exception as error:
        return [refusal(item, str(error))]
    program = ProcessRun(item, test.run)  # type: ignore[arg-type]
    reports = program.play()
    test.error = program.error
    for report in reports:
        if report.failed and not under_chaos:  # in chaos tests the report of the search has it
            report.sections.append(("to repeat it", how_to_repeat(item, test.seed, test.passed, __name__)))
    return reports


def _shrink_order(item: pytest.Item, reports: list[pytest.TestReport]) -> list[pytest.TestReport]:
    """Return the reports of the run that fails in the same way with the fewest order deviations."""
    from broker_sim.testing.order_search import EndedTest, shrink_order  # noqa: PLC0415 - see _checked
    from broker_sim.testing.seeded_run import SeededRun  # noqa: PLC0415 - see _checked

    def last_run() -> EndedTest | None:
        test = item.stash[_test_of_item]
        return EndedTest(test.run, test.seed, test.error) if test and isinstance(test.run, SeededRun) else None

    def run_once(deviations: Sequence[Deviation]) -> tuple[EndedTest, list[pytest.TestReport]]:
        item.stash[_order_of_item] = deviations
        _forget_run(item)
        again = runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type]
        test = last_run()
        assert test is not None, "a test that ran once can run again"
        return test, again

    first = last_run()
    return reports if first is None else shrink_order(first, reports, run_once)


def _run_chaos(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Run a test under chaos; return the reports of the smallest failure, or of the last seed."""
    from broker_sim.chaos.link import line_of, link_to_function  # noqa: PLC0415 - see _checked
    from broker_sim.chaos.settings import Settings  # noqa: PLC0415 - see _checked
    from broker_sim.testing.chaos_tests import MarkedTest  # noqa: PLC0415 - see _checked
    from broker_sim.testing.options import options_of  # noqa: PLC0415 - see _checked

    settings = None
    with suppress(pytest.fail.Exception):
        settings = options_of(item, CHAOS_MARKER, Settings)
    if settings is None:
        return runtestprotocol(item, log=False, nextitem=nextitem)  # its set-up fails with the error

    next_one: Any = item.parent  # only fixtures of function scope are torn down

    def run_once(begin: Begin) -> tuple[list[pytest.TestReport], Outcome | None]:
        run: ScheduledRun | None = None

        def begin_here() -> ScheduledRun:
            nonlocal run
            run = begin()
            return run

        item.stash[_begin_of_item] = begin_here
        _forget_run(item)
        reports = _run_once(item, next_one)
        test = item.stash.get(_test_of_item, None)
        return reports, None if run is None else run.outcome(None if test is None else test.error)

    test = MarkedTest(item.name, settings, run_once)
    test.is_full = item.config.get_verbosity() > 1
    test.page_file = _page_file(item)
    if (playground := item.config.getoption("kafka_link")) is not None:
        function = item.obj  # type: ignore[attr-defined]  # pytest's items of functions have it
        test.link_line = lambda seed: line_of(lambda: link_to_function(playground, function, seed))
    reports = test.search(_seeds_of_command_line(item.config))
    for report in reports:
        if report.when == "call" and test.exploration is not None:
            report.user_properties.append((EXPLORED, str(test.exploration)))
        if report.when == "call" and report.passed and test.sightings.seeds > 1:
            report.user_properties += [(SEEN, line) for line in test.sightings.lines()]
    return reports + _tear_down_the_rest(item, nextitem)


def _page_file(item: pytest.Item) -> Path | None:
    """Return the HTML file to write for a failing run of a test, None for no file."""
    directory: Path | None = item.config.getoption("kafka_page")
    name = re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-")
    return None if directory is None else directory / f"{name}.html"


def _write_page(item: pytest.Item, reports: Sequence[pytest.TestReport], file: Path) -> None:
    """Run a failed seed again, write the HTML file that plays it, and add its name to the reports."""
    from broker_sim.chaos.chaos import failure_text  # noqa: PLC0415 - see _checked
    from broker_sim.page.recording import page_of  # noqa: PLC0415 - see _checked
    from broker_sim.testing.seeded_run import SeededRun  # noqa: PLC0415 - see _checked

    item.stash[_records_of_item] = True
    _forget_run(item)
    _run_once(item, item.parent)
    test = item.stash[_test_of_item]
    if test is None or not isinstance(test.run, SeededRun):
        return
    failure = None if test.error is None else failure_text(test.error)
    run = test.run.recorded(f"{item.name}, seed {test.seed}", failure)
    if run is None:
        text = "no page: the test does not use the fixture kafka, whose cluster a page shows"
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = page_of(run).write(file)
    for report in reports:
        if report.failed:
            report.sections.append(("page", text))


def _has_passed(item: pytest.Item, reports: list[pytest.TestReport]) -> bool:
    """Whether the next seed should run; an xfail test continues until it fails."""
    test = item.stash.get(_test_of_item, None)
    if test is None or test.has_failed:
        return False
    return all(report.passed or report.when == "call" for report in reports)


def _forget_run(item: pytest.Item) -> None:
    """Give the next run a new instance of its test class, and a report without earlier output."""
    item._report_sections.clear()  # noqa: SLF001 - pytest clears it only with the item
    if getattr(item, "cls", None) is not None:
        for name in ("_instance", "_obj"):
            item.__dict__.pop(name, None)


def _tear_down_the_rest(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Tear down the fixtures that the last seed would have torn down; return a report if that fails."""
    teardown = item.session._setupstate.teardown_exact  # noqa: SLF001 - no other way to it
    call = pytest.CallInfo.from_call(lambda: teardown(nextitem), when="teardown")
    if call.excinfo is None:
        return []
    return [item.ihook.pytest_runtest_makereport(item=item, call=call)]


def _inside(config: pytest.Config) -> Any:
    """Return the plugin in the process of a `def` test, None elsewhere."""
    return config.pluginmanager.get_plugin(INSIDE_PLUGIN)


@pytest.fixture
def _kafka_in_virtual_time(request: pytest.FixtureRequest) -> Iterator[SimulatedCluster]:
    """Provide the running cluster of this seed for the fixture `kafka`.

    It has the verbs of `AsyncCluster`, `bootstrap_servers`, and `leader`, `followers`, `isr` and
    `high_watermark` of a topic. Verbs that wait are awaited.
    """
    from broker_sim.testing.options import as_marked  # noqa: PLC0415 - see _checked

    if (inside := _inside(request.config)) is not None:
        yield inside.kafka
        return
    test = request.node.stash[_test_of_item]
    assert test is not None
    yield as_marked(request.node, VIRTUAL_MARKER, test.run.open_cluster)
    test.run.close_cluster()


@pytest.fixture
def chaos(request: pytest.FixtureRequest) -> Iterator[Chaos]:
    """Provide a `broker_sim.chaos.Chaos` with a new cluster for each seed."""
    from broker_sim.testing.options import as_marked  # noqa: PLC0415 - see _checked

    if (inside := _inside(request.config)) is not None:
        yield inside.chaos
        return
    test = request.node.stash.get(_test_of_item, None)
    if test is None or request.node.get_closest_marker(CHAOS_MARKER) is None:
        _fail(f"{request.node.name}: mark it with @pytest.mark.{CHAOS_MARKER} to use the fixture chaos")
    yield as_marked(request.node, CHAOS_MARKER, test.run.open_chaos)
    test.run.close_chaos()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check the marker, and create the run that the fixtures and the test share."""
    item.stash[_test_of_item] = None
    if _inside(item.config) is not None:
        return
    if item.get_closest_marker(CHAOS_MARKER) is not None:
        item.stash[_test_of_item] = _under_chaos(item)
    elif item.get_closest_marker(VIRTUAL_MARKER) is not None:
        item.stash[_test_of_item] = _checked(item)


def _checked(item: pytest.Item) -> _VirtualTest:
    """Return the test's run with the options of its marker; fails the test with one line if they are invalid."""
    # Imported for the first marked test, so that other runs of pytest start as fast as without the plugin.
    from broker_sim.testing.options import VirtualTimeOptions, options_of  # noqa: PLC0415 - see above
    from broker_sim.testing.seeded_run import SeededRun  # noqa: PLC0415 - see above

    function = _function(item, VIRTUAL_MARKER)
    options = options_of(item, VIRTUAL_MARKER, VirtualTimeOptions)
    seed, passed = item.stash[_seed_of_item]
    run = SeededRun(options, seed, item.stash[_order_of_item], record=item.stash[_records_of_item])
    return _VirtualTest(function, run, seed, passed)


def _under_chaos(item: pytest.Item) -> _VirtualTest:
    """Begin the run of a test under chaos; fails the test with one line if its marker is invalid."""
    from broker_sim.chaos.settings import Settings  # noqa: PLC0415 - see _checked
    from broker_sim.testing.options import options_of  # noqa: PLC0415 - see _checked

    function = _function(item, CHAOS_MARKER)
    options_of(item, CHAOS_MARKER, Settings)
    if not _runs_in_a_program(item) and "chaos" not in getattr(item, "fixturenames", ()):
        _fail(f"{item.name}: add the argument chaos, which starts the workers")
    run = item.stash[_begin_of_item]()
    return _VirtualTest(function, run, run.loop.seed, 0)


def _function(item: pytest.Item, marker: str) -> Any:
    """Return the test's function; fails the test if it cannot run in virtual time."""
    if not isinstance(item, pytest.Function):
        _fail(f"{item.name}: @pytest.mark.{marker} is for functions")
    if item.cls is not None and issubclass(item.cls, unittest.TestCase):
        _fail(f"{item.name}: @pytest.mark.{marker} does not work in a unittest.TestCase")
    return item.obj


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """Set up a fixture of a marked test on its loop; fixtures of wider scopes stay in real time."""
    item = request._pyfuncitem  # noqa: SLF001 - request.node is a module for a fixture of its scope
    test = item.stash.get(_test_of_item, None)
    if test is None or fixturedef.func.__module__.partition(".")[0] in _PLUGINS:
        return (yield)
    from broker_sim.testing.fixtures import is_async, on_the_loop  # noqa: PLC0415 - see _checked

    if request.scope != "function":
        if is_async(fixturedef.func):
            _fail(
                f"{item.name}: the async fixture {fixturedef.argname!r} has scope {request.scope}; "
                "in virtual time give it scope function"
            )
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixturedef, "func", on_the_loop(fixturedef.func, request, test.run))
        try:
            return (yield)
        except BaseException as error:
            _note_error(item, test, error)
            if isinstance(error, _ERRORS_OF_THE_RUN):
                raise error.with_traceback(None) from None
            raise


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked test on the loop of its seed."""
    __tracebackhide__ = True
    test = pyfuncitem.stash.get(_test_of_item, None)
    if test is None:
        return None
    names = pyfuncitem._fixtureinfo.argnames  # noqa: SLF001 - as pytest's own call of a test
    try:
        test.run.wait_for_test(test.function(**{name: pyfuncitem.funcargs[name] for name in names}))
        test.run.raise_unhandled()
    except BaseException as error:
        _note_error(pyfuncitem, test, error)
        if isinstance(error, _ERRORS_OF_THE_RUN):
            raise error.with_traceback(None) from None  # without the loop's frames: the text says where tasks wait
        raise
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Close the loop once the fixtures are torn down."""
    test = item.stash.get(_test_of_item, None)
    if test is None:
        return (yield)
    try:
        try:
            return (yield)
        finally:
            test.run.close()
    except BaseException as error:
        if test.has_failed and isinstance(error, _ERRORS_OF_THE_RUN):
            if not isinstance(test.error, _ERRORS_OF_THE_RUN):  # which would fail the teardown too
                item.add_report_section("teardown", "virtual time", str(error))
            return None
        _note_error(item, test, error)
        raise


def _note_error(item: pytest.Item, test: _VirtualTest, error: BaseException) -> None:
    """Add the last events, and the command that repeats them, to the first error of a seed."""
    if test.has_failed or isinstance(error, pytest.skip.Exception):
        return
    test.error = error
    if item.get_closest_marker(CHAOS_MARKER) is None:  # in chaos tests the report of the search has it
        from broker_sim.testing.seeded_run import how_to_repeat  # noqa: PLC0415 - see _checked

        error.add_note(test.run.report())
        error.add_note(how_to_repeat(item, test.seed, test.passed, __name__))


def _seeds(config: pytest.Config, marker_seeds: object) -> Sequence[int]:
    """Return the seeds of the command line, by default 0 to `marker_seeds` - 1."""
    seeds = _seeds_of_command_line(config)
    if seeds is not None:
        return seeds
    # An invalid number is reported when the test is set up.
    return range(marker_seeds if isinstance(marker_seeds, int) and marker_seeds > 0 else 1)


def _seeds_of_command_line(config: pytest.Config) -> Sequence[int] | None:
    only: int | None = config.getoption("virtual_seed")
    if only is not None:
        return (only,)
    count: int | None = config.getoption("virtual_seeds")
    return None if count is None else range(count)


def _fail(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)

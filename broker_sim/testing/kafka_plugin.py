"""The pytest plugin that is loaded automatically: the fixtures `kafka` and `kafka_cluster`, in real time.

    @pytest.mark.kafka(topics=["orders:3:3"])
    def test_orders(kafka):
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

Every run of pytest imports this module if the package is installed, so it imports nothing of the simulator before a
test uses a fixture. In tests marked `virtual_time` the fixture `kafka` is the cluster of
`broker_sim.testing.pytest_plugin`, which conftest.py loads, because it replaces clocks. That plugin's markers are
registered here, so that a test without the plugin gets a helpful error.
"""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from broker_sim.testing import CHAOS_MARKER, KAFKA_MARKER, VIRTUAL_MARKER

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from broker_sim.cluster.arguments import ClusterOptions
    from broker_sim.cluster.cluster import Cluster
    from broker_sim.cluster.status.clients_status import ClientStatus
    from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
    from broker_sim.testing.real_kafka import RealKafka
    from broker_sim.testing.shared_clusters import SessionKafka, SharedClusters

MARKERS: Final = {
    KAFKA_MARKER: "the cluster of the fixtures `kafka` and `kafka_cluster`, and its initial topics, each as "
    "NAME:PARTITIONS:RF:KEY=VALUE",
    VIRTUAL_MARKER: "run this async test in virtual time, once per seed; the fixture `kafka` is its cluster",
    CHAOS_MARKER: "run this async test in virtual time under faults drawn by each seed, or in all orders of "
    "its workers; the fixture `chaos` has its cluster and starts its workers",
}
VIRTUAL_PLUGIN: Final = "broker_sim.testing.pytest_plugin"
OPTIONS: Final = {"kafka_bootstrap": "--kafka-bootstrap", "kafka_containers": "--kafka-containers"}
"""Command-line options that replace the simulator by a real Kafka."""
_INSIDE: Final = ("broker_sim.", "asyncio.", "concurrent.")
"""Module prefixes of the frames of a verb's call, which tracebacks omit."""
REPORTED: Final = 8
"""Maximum number of connections listed in a warning."""
_CLUSTER_FIXTURES: Final = {"kafka", "kafka_cluster", "kafka_session"}
_PACKAGES: Final = {"broker_sim", "broker_sim_purgatory"}


def _servers(text: str) -> str:
    if not all(re.fullmatch(r"\s*\S+:\d+\s*", server) for server in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r}: pass HOST:PORT, several separated by commas")
    return text


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options, and keep pytest from rewriting the asserts of the simulator.

    Pytest rewrites all modules of a package with a plugin. The simulator would then be compiled again, and tests would
    run other code than programs do.
    """
    group = parser.getgroup("kafka")
    group.addoption(
        OPTIONS["kafka_bootstrap"],
        type=_servers,
        metavar="HOST:PORT,...",
        help="run tests with the fixture kafka against this Kafka and not the simulator",
    )
    group.addoption(
        OPTIONS["kafka_containers"],
        action="store_true",
        help="run tests with the fixture kafka against a real Kafka of three brokers in containers",
    )
    marked: set[str] = getattr(pluginmanager.rewrite_hook, "_must_rewrite", set())
    marked -= _PACKAGES


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, those of virtual time too; `pytest --markers` shows their arguments."""
    arguments = dict(zip(MARKERS, MARKERS, strict=True))
    if config.getoption("markers"):
        from broker_sim.testing.options import signatures  # noqa: PLC0415 - see the module

        arguments = signatures()
    for marker, text in MARKERS.items():
        config.addinivalue_line("markers", f"{arguments[marker]}: {text}")
    if all(map(config.getoption, OPTIONS)):
        raise pytest.UsageError(f"pass {' or '.join(OPTIONS.values())}, not both")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Check before the first test that the Kafka of `--kafka-bootstrap` answers. Raises UsageError, in one line."""
    servers = session.config.getoption("kafka_bootstrap")
    if servers and not hasattr(session.config, "workerinput"):  # workers of pytest-xdist start after this check
        from broker_sim.testing.real_kafka import check_address  # noqa: PLC0415 - see the module

        check_address(servers)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Import the cluster before a fixture replaces files, clocks or sockets, because its libraries read them on import.

    Fail a test of chaos whose plugin is missing; pytest would only say that there is no fixture `chaos`.
    """
    fixtures = getattr(item, "_fixtureinfo", None)
    if fixtures is not None and _CLUSTER_FIXTURES.intersection(fixtures.names_closure):
        import_module("broker_sim.cluster.cluster")
    if (
        item.get_closest_marker(CHAOS_MARKER) is not None
        and fixtures is not None
        and CHAOS_MARKER in fixtures.names_closure
        and CHAOS_MARKER not in fixtures.name2fixturedefs
    ):
        _fail_without_plugin(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the state of the cluster to the report of a failed test in real time, as a section `kafka`.

    If a verb has raised an error about its call, the traceback ends at that call.
    """
    if call.excinfo is not None and "broker_sim.errors" in sys.modules:
        _hide_verbs(call.excinfo.value)
    report = yield
    if call.when == "call" and report.failed and not _describes_cluster(call.excinfo):
        for name, cluster in _clusters_of(item):
            if text := _description(cluster):
                report.sections.append((name, text))
    return report


def _describes_cluster(error: pytest.ExceptionInfo[BaseException] | None) -> bool:
    """Whether the message of the error contains the state of the cluster, as with `wait_until`."""
    return error is not None and error.typename == "ClusterTimeoutError" and "\n" in str(error.value)


def _hide_verbs(error: BaseException) -> None:
    """Cut the traceback of a verb's error about its call after the last frame outside the simulator."""
    from broker_sim.errors import REFUSALS  # noqa: PLC0415 - imported already

    if isinstance(error, REFUSALS):
        last, traceback = None, error.__traceback__
        while traceback is not None:
            if not traceback.tb_frame.f_globals.get("__name__", "").startswith(_INSIDE):
                last = traceback
            traceback = traceback.tb_next
        if last is not None:
            last.tb_next = None


def _clusters_of(item: pytest.Item) -> Iterator[tuple[str, Cluster]]:
    """Yield the name and the cluster of each fixture that is a simulated cluster in real time."""
    if "broker_sim.cluster.cluster" in sys.modules:
        from broker_sim.cluster.cluster import Cluster  # noqa: PLC0415 - a fixture has imported it

        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, Cluster):
                yield name, value


def _description(cluster: Cluster) -> str:
    """Return the state of the cluster in words, or the error of reading it; "" if the cluster is closed."""
    from broker_sim.errors import WrongStateError  # noqa: PLC0415 - see the module

    try:
        return cluster.describe()
    except WrongStateError:
        return ""
    except Exception as error:  # noqa: BLE001 - the failure of the test must be reported
        return f"the state of the cluster cannot be read: {error!r}"


@pytest.fixture(scope="session")
def _kafka_clusters(pytestconfig: pytest.Config) -> Iterator[SharedClusters[Any]]:
    """Provide the clusters that tests of this process share; each is opened for the first test that needs it."""
    with _shared_clusters(pytestconfig) as clusters:
        yield clusters


def _shared_clusters(config: pytest.Config) -> SharedClusters[Any]:
    if config.getoption("kafka_containers"):
        from broker_sim.testing.containers import KafkaInContainers  # noqa: PLC0415 - see the module

        return KafkaInContainers()
    if config.getoption("kafka_bootstrap"):
        from broker_sim.testing.real_kafka import KafkaAtAddress  # noqa: PLC0415 - see the module

        return KafkaAtAddress(config.getoption("kafka_bootstrap"))
    from broker_sim.testing.shared_clusters import SimulatedClusters  # noqa: PLC0415 - see the module

    return SimulatedClusters()


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[Cluster | SimulatedCluster | RealKafka]:
    """Provide a Kafka cluster without topics, faults and groups of other tests.

    It is a `broker_sim.Cluster` of three brokers on free ports. Tests share it, and it is reset after each. With
    `--kafka-bootstrap` it is the Kafka at that address, with `--kafka-containers` a real Kafka in containers.
    In a test marked `virtual_time` it is a `broker_sim.SimulatedCluster`, new for each seed.
    """
    if request.node.get_closest_marker(CHAOS_MARKER) is not None:
        if not _is_virtual_plugin_loaded(request.config):
            _fail_without_plugin(request.node)
        yield request.getfixturevalue("chaos").kafka
        return
    if request.node.get_closest_marker(VIRTUAL_MARKER) is not None:
        yield _in_virtual_time(request)
        return
    from broker_sim.testing.options import as_marked  # noqa: PLC0415 - see the module

    options = _options(request)
    clusters: SharedClusters[Any] = request.getfixturevalue("_kafka_clusters")
    with ExitStack() as stack:
        cluster = clusters.lend(options, _reporter(request))
        yield as_marked(request.node, KAFKA_MARKER, lambda: stack.enter_context(cluster))


@pytest.fixture(scope="session")
def kafka_session(_kafka_clusters: SharedClusters[Any]) -> Callable[..., SessionKafka]:
    """Provide addresses for clients that outlive tests, such as those of session-scoped fixtures.

    `kafka_session(brokers=3, configs=None, ...)` takes the arguments of the marker `kafka` without `topics`, and
    returns an object with `bootstrap_servers` and `client_config` of the cluster that tests with these arguments
    share. Clients that connect there keep their connections when the cluster is reset, and cause no warning.
    """

    def addresses(**arguments: Any) -> SessionKafka:
        from broker_sim.cluster.arguments import ClusterOptions  # noqa: PLC0415 - see the module

        if "topics" in arguments:
            raise ValueError("kafka_session takes no topics: they are deleted after each test")
        return _kafka_clusters.for_session(ClusterOptions.from_marker((), arguments))

    return addresses


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Provide a new `broker_sim.Cluster`, which is closed after the test."""
    if request.node.get_closest_marker(VIRTUAL_MARKER) is not None:
        _fail(f"{request.node.name}: in virtual time use the fixture kafka, which is a new cluster each time")
    for name, option in OPTIONS.items():
        if request.config.getoption(name):
            pytest.skip(f"kafka_cluster needs the simulator; run it without {option}")
    options = _options(request)
    from broker_sim.errors import WrongStateError  # noqa: PLC0415 - see the module
    from broker_sim.testing.options import as_marked  # noqa: PLC0415 - see the module
    from broker_sim.testing.shared_clusters import new_cluster  # noqa: PLC0415 - see the module

    report = _reporter(request)
    with ExitStack() as stack:
        new = new_cluster(options, topics=options.topics)
        cluster = as_marked(request.node, KAFKA_MARKER, lambda: stack.enter_context(new))
        yield cluster
        with suppress(WrongStateError):  # if the test has closed it
            report(cluster.clients())


def _reporter(request: pytest.FixtureRequest) -> Callable[[Iterable[ClientStatus]], None]:
    """Return a function that warns of clients that are still connected at the end of the test.

    It does not warn after a failed test, whose traceback keeps its variables and so its clients alive.
    """
    node, failures = request.node, request.session.testsfailed

    def report(clients: Iterable[ClientStatus]) -> None:
        connections = [f"{each.client_id!r} ({each.address}, last request {each.api})" for each in clients]
        if connections and request.session.testsfailed == failures:
            from broker_sim.errors import OutlivingClientWarning  # noqa: PLC0415 - see the module

            more = f" and {len(connections) - REPORTED} more" if len(connections) > REPORTED else ""
            node.warn(
                OutlivingClientWarning(
                    f"clients outlived {node.name} and were cut off: {', '.join(connections[:REPORTED])}{more}; close"
                    " them in the test, or connect clients that should live on to the addresses of kafka_session"
                )
            )

    return report


def _in_virtual_time(request: pytest.FixtureRequest) -> SimulatedCluster:
    name = request.node.name
    if not _is_virtual_plugin_loaded(request.config):
        _fail_without_plugin(request.node)
    if request.node.get_closest_marker(KAFKA_MARKER) is not None:
        _fail(f"{name}: pass the arguments to @pytest.mark.{VIRTUAL_MARKER}, not to @pytest.mark.{KAFKA_MARKER}")
    cluster: SimulatedCluster = request.getfixturevalue("_kafka_in_virtual_time")
    return cluster


def _is_virtual_plugin_loaded(config: pytest.Config) -> bool:
    return config.pluginmanager.has_plugin(VIRTUAL_PLUGIN)


def _fail_without_plugin(item: pytest.Item) -> NoReturn:
    _fail(f'{item.name}: virtual time needs pytest_plugins = ["{VIRTUAL_PLUGIN}"] in conftest.py')


def _options(request: pytest.FixtureRequest) -> ClusterOptions:
    from broker_sim.cluster.arguments import ClusterOptions  # noqa: PLC0415 - see the module
    from broker_sim.testing.options import options_of  # noqa: PLC0415 - see the module

    return options_of(request.node, KAFKA_MARKER, ClusterOptions)


def _fail(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)

"""The pytest plugin that loads by itself: the fixtures `kafka` and `kafka_cluster`, in real time.

    @pytest.mark.kafka(topics=["orders:3:3"])
    def test_orders(kafka):
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

Every run of pytest imports this module where the package is installed, so it imports nothing of the
simulator before a test asks for a fixture. In tests marked `virtual_time` the fixture `kafka` is the
cluster of `broker_sim.testing.pytest_plugin`, which conftest.py loads, because it replaces clocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.cluster.cluster import Cluster
    from broker_sim.cluster.simulated_cluster import SimulatedCluster
    from broker_sim.testing.marked_clusters import MarkedArguments, MarkedClusters
    from broker_sim.testing.real_kafka import RealKafka

MARKER: Final = "kafka"
SIGNATURE: Final = (
    f"{MARKER}(brokers=3, configs=None, topics=()): the cluster of the fixtures `kafka` and "
    "`kafka_cluster`, and the topics that the test finds, each as NAME:PARTITIONS:RF:KEY=VALUE"
)
VIRTUAL_MARKER: Final = "virtual_time"
VIRTUAL_PLUGIN: Final = "broker_sim.testing.pytest_plugin"
_PACKAGES: Final = {"broker_sim", "broker_sim_purgatory", "broker_sim_integration"}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add `--kafka-bootstrap`, and keep pytest from rewriting the asserts of the simulator.

    It does so in all modules of a package that has a plugin. Whoever imports the simulator would
    compile it anew, and run it in another form than programs do.
    """
    parser.getgroup("kafka").addoption(
        "--kafka-bootstrap",
        metavar="HOST:PORT,...",
        help="run tests with the fixture kafka against this Kafka and not the simulator",
    )
    marked: set[str] = getattr(pluginmanager.rewrite_hook, "_must_rewrite", set())
    marked -= _PACKAGES


def pytest_configure(config: pytest.Config) -> None:
    """Tell the marker to pytest."""
    config.addinivalue_line("markers", SIGNATURE)


@pytest.fixture(scope="session")
def _kafka_clusters(pytestconfig: pytest.Config) -> Iterator[MarkedClusters | RealKafka]:
    """Give the clusters that tests of this process share; each is opened when a test asks for it."""
    if (servers := _bootstrap_servers(pytestconfig)) is not None:
        from broker_sim.testing.real_kafka import RealKafka  # noqa: PLC0415 - see the module

        yield RealKafka(servers)
        return
    from broker_sim.testing.marked_clusters import MarkedClusters  # noqa: PLC0415 - see the module

    with MarkedClusters() as clusters:
        yield clusters


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[Cluster | SimulatedCluster | RealKafka]:
    """Give the test a Kafka cluster without topics, faults and groups of other tests.

    It is a `broker_sim.Cluster` of three brokers on free ports. Tests share it, and after each it is
    reset. With `--kafka-bootstrap` it is that Kafka. In a test marked `virtual_time` it is a `broker_sim.SimulatedCluster`, new for each seed.
    """
    if request.node.get_closest_marker(VIRTUAL_MARKER) is not None:
        yield _in_virtual_time(request)
        return
    arguments = _arguments(request)
    clusters: MarkedClusters | RealKafka = request.getfixturevalue("_kafka_clusters")
    with clusters.lend(arguments) as cluster:
        yield cluster


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Give the test a `broker_sim.Cluster` of its own, which ends with the test."""
    if request.node.get_closest_marker(VIRTUAL_MARKER) is not None:
        _fail(
            f"{request.node.name}: in virtual time take the fixture kafka, which is new each time"
        )
    if _bootstrap_servers(request.config) is not None:
        pytest.skip("kafka_cluster needs the simulator, and --kafka-bootstrap was given")
    with _arguments(request).cluster() as cluster:
        yield cluster


def _bootstrap_servers(config: pytest.Config) -> str | None:
    servers: str | None = config.getoption("kafka_bootstrap", None)
    return servers


def _in_virtual_time(request: pytest.FixtureRequest) -> SimulatedCluster:
    name = request.node.name
    if not request.config.pluginmanager.has_plugin(VIRTUAL_PLUGIN):
        _fail(f'{name}: virtual time needs pytest_plugins = ["{VIRTUAL_PLUGIN}"] in conftest.py')
    if request.node.get_closest_marker(MARKER) is not None:
        _fail(f"{name}: give brokers and configs to @pytest.mark.{VIRTUAL_MARKER}, not to {MARKER}")
    cluster: SimulatedCluster = request.getfixturevalue("_kafka_in_virtual_time")
    return cluster


def _arguments(request: pytest.FixtureRequest) -> MarkedArguments:
    """Return what the closest marker says; what is wrong with it is the test's error, in one line."""
    from broker_sim.testing.marked_clusters import MarkedArguments  # noqa: PLC0415 - see the module

    marker = request.node.get_closest_marker(MARKER)
    if marker is None:
        return MarkedArguments()
    wrong: object = None
    arguments: MarkedArguments | None = None
    try:
        arguments = MarkedArguments.from_marker(marker.args, marker.kwargs)
    except (TypeError, ValueError) as error:
        wrong = error
    if arguments is None:  # out here the report is this line, and not the error's own too
        _fail(f"{request.node.name}: @pytest.mark.{MARKER}: {wrong}")
    return arguments


def _fail(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)

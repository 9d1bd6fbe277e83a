"""The clusters that tests share: each is opened for the first test that needs it, and reset after each test."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

from broker_sim.cluster.cluster import Cluster
from broker_sim.cluster.text_forms import parse_topic
from broker_sim.errors import ConfigError
from broker_sim.testing.options import configs_for_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from broker_sim.cluster.arguments import ClusterOptions
    from broker_sim.cluster.status.clients_status import ClientStatus

K = TypeVar("K")
LASTING: Final = "LASTING"
"""Name of the listener for clients that outlive tests."""


class SessionKafka(Protocol):
    """A cluster's addresses for clients that outlive single tests."""

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of each broker, comma-separated; constant during the run."""

    def client_config(self, client: str) -> dict[str, Any]:
        """Return the configuration of a client, as `Cluster.client_config`."""


KEPT_REQUESTS: Final = 100
"""Number of recorded requests of a cluster for tests."""


class SharedClusters(ABC, Generic[K]):
    """Open clusters, one for each set of options; a context manager that closes them.

    A cluster has `create_topic` and `reset` like `Cluster`.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._clusters: dict[object, K] = {}
        self._pid = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def lend(self, options: ClusterOptions, report: Callable[[Iterable[ClientStatus]], object]) -> Iterator[K]:
        """Yield a cluster with the topics of the options, and reset it afterwards.

        `report(clients)` is called with the connections that are still open at the end, as far as they are known. A
        cluster whose reset fails is not used again, and the test that used it fails.
        """
        options = self._fit(options)
        cluster: Any = self._find(options)
        try:
            for topic in map(parse_topic, options.topics):
                cluster.create_topic(*topic)
            yield cluster
        finally:
            del self._clusters[_key(options)]
            clients = self._reset(cluster, options)
            self._clusters[_key(options)] = cluster
            report(clients)

    def for_session(self, options: ClusterOptions) -> SessionKafka:
        """Return constant addresses of the cluster that tests with these options share."""
        options = self._fit(options)
        return self._session_face(self._find(options), options)

    def _find(self, options: ClusterOptions) -> K:
        self._forget_after_fork()
        key = _key(options)
        if key not in self._clusters:
            self._clusters[key] = self._stack.enter_context(self._open(options))
        return self._clusters[key]

    def _reset(self, cluster: Any, options: ClusterOptions) -> Iterable[ClientStatus]:
        """Reset a cluster after a test; return the connections that clients have left open, as far as known."""
        del options
        cluster.reset()
        return ()

    def _session_face(self, cluster: Any, options: ClusterOptions) -> SessionKafka:
        """Return the addresses for clients that outlive tests."""
        del options
        face: SessionKafka = cluster
        return face

    def _forget_after_fork(self) -> None:
        """Drop the parent's clusters in a forked child, as with pytest-forked."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._stack.pop_all()
            self._clusters.clear()

    def _fit(self, options: ClusterOptions) -> ClusterOptions:
        """Return the options that apply to clusters of this kind; skip the test if they cannot satisfy it."""
        return options

    @abstractmethod
    def _open(self, options: ClusterOptions) -> AbstractContextManager[K]:
        """Return a cluster with these brokers and configurations but without topics."""


def _key(options: ClusterOptions) -> object:
    configs = frozenset(configs_for_tests(options).items())
    users = frozenset((options.users or {}).items())
    return options.brokers, options.first_broker_id, configs, options.security, users


class SimulatedClusters(SharedClusters[Cluster]):
    """Simulated clusters, which get new ports for each test so that earlier clients do not reach them."""

    def _open(self, options: ClusterOptions) -> AbstractContextManager[Cluster]:
        return new_cluster(options, lasting=not _has_own_listeners(options))

    def _reset(self, cluster: Cluster, options: ClusterOptions) -> Iterable[ClientStatus]:
        clients = [client for client in cluster.clients() if client.listener != LASTING]
        if _has_own_listeners(options):
            cluster.reset()
        else:
            cluster.reset(new_ports=True, lasting=LASTING)
        return clients

    def _session_face(self, cluster: Cluster, options: ClusterOptions) -> SessionKafka:
        if _has_own_listeners(options):
            raise ConfigError("kafka_session adds a listener to the cluster; leave listeners out of its configs")
        return _LastingAddresses(cluster)


class _LastingAddresses:
    """The addresses of a cluster's listener that keeps its ports between tests."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster.bootstrap_servers_of(LASTING)

    def client_config(self, client: str, *, user: str | None = None, mechanism: str | None = None) -> dict[str, Any]:
        return self._cluster.client_config(client, user=user, mechanism=mechanism, listener=LASTING)


def _has_own_listeners(options: ClusterOptions) -> bool:
    return any("listener" in name or name == "security.inter.broker.protocol" for name in options.configs or {})


@contextmanager
def new_cluster(options: ClusterOptions, *, topics: Sequence[str] = (), lasting: bool = False) -> Iterator[Cluster]:
    """Open a cluster for tests in real time with these topics; its last requests are recorded for failure reports.

    With `lasting` it has a second listener, for clients that outlive tests.
    """
    first = (options.security or "plaintext").upper()
    with Cluster(
        options.brokers,
        first_broker_id=options.first_broker_id,
        configs=configs_for_tests(options),
        topics=topics,
        listeners=f"{first}://127.0.0.1:0,{LASTING}://127.0.0.1:0" if lasting else None,
        security=options.security,
        users=options.users,
    ) as cluster:
        cluster.keep_requests(KEPT_REQUESTS)
        yield cluster

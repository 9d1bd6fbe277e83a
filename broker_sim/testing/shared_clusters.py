"""The clusters that tests share: each is opened when a test asks for it, and reset after each test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from broker_sim.cluster.cluster import Cluster
from broker_sim.cluster.text_forms import parse_topic
from broker_sim.testing.options import configs_for_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from broker_sim.cluster.arguments import ClusterOptions

K = TypeVar("K")

KEPT_REQUESTS: Final = 100
"""Number of requests that a cluster for tests records."""


class SharedClusters(ABC, Generic[K]):
    """Open clusters, one for each number of brokers and set of configurations; closed with this.

    A cluster has `create_topic` and `reset` as `Cluster` has them.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._lendable: dict[object, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def lend(self, options: ClusterOptions) -> Iterator[K]:
        """Give a cluster with the topics, and reset it afterwards.

        A cluster that cannot be reset is not lent again; the error is that of the test that had it.
        """
        options = self._fit(options)
        configs = frozenset(configs_for_tests(options).items())
        users = frozenset((options.users or {}).items())
        key = options.brokers, configs, options.security, users
        cluster = self._lendable.pop(key, None)
        if cluster is None:
            cluster = self._stack.enter_context(self._open(options))
        try:
            for topic in map(parse_topic, options.topics):
                cluster.create_topic(*topic)
            yield cluster
        finally:
            cluster.reset()
            self._lendable[key] = cluster

    def _fit(self, options: ClusterOptions) -> ClusterOptions:
        """Return what a cluster of this kind can be like; skip the test where that is not enough."""
        return options

    @abstractmethod
    def _open(self, options: ClusterOptions) -> AbstractContextManager[K]:
        """Return a cluster with these brokers and configurations, without topics."""


class SimulatedClusters(SharedClusters[Cluster]):
    """Clusters of the simulator."""

    def _open(self, options: ClusterOptions) -> AbstractContextManager[Cluster]:
        return new_cluster(options)


@contextmanager
def new_cluster(options: ClusterOptions, *, topics: Sequence[str] = ()) -> Iterator[Cluster]:
    """Open a cluster for tests in real time with these topics only; the report of a failure has its last requests."""
    with Cluster(
        options.brokers,
        configs=configs_for_tests(options),
        topics=topics,
        security=options.security,
        users=options.users,
    ) as cluster:
        cluster.keep_requests(KEPT_REQUESTS)
        yield cluster

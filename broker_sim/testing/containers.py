"""A real Kafka in containers, for tests that otherwise run on the simulator: `--kafka-containers`.

The code that starts it is in another distribution, which may not be installed, so it is found by an entry point.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, Protocol

import pytest

from broker_sim.cluster.arguments import ClusterOptions
from broker_sim.testing.options import configs_for_tests
from broker_sim.testing.real_kafka import RealKafka, skip_logins
from broker_sim.testing.shared_clusters import SharedClusters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

OPTION: Final = "--kafka-containers"
GROUP: Final = "broker_sim.kafka_containers"
"""The group's one entry point is a function that takes configurations and returns a cluster to be opened."""
BROKERS: Final = 3
REMEDY: Final = "pip install ./integration, in the clone that broker-sim is from"


class _Containers(Protocol):
    """A cluster of `BROKERS` brokers. `open` raises RuntimeError with one line of advice."""

    @property
    def bootstrap_servers(self) -> str: ...

    def open(self) -> None: ...

    def close(self) -> None: ...


class KafkaInContainers(SharedClusters[RealKafka]):
    """Clusters of three real brokers for the use of these tests only."""

    def __init__(self) -> None:
        super().__init__()
        self._unavailable: str | None = None
        """The reason why no cluster could be started, so that the next test does not try again."""

    def _fit(self, options: ClusterOptions) -> ClusterOptions:
        skip_logins(options, OPTION)
        if options.brokers > BROKERS:
            pytest.skip(f"{options.brokers} brokers need the simulator: {OPTION} has {BROKERS}")
        return ClusterOptions(configs=options.configs, topics=options.topics)

    @contextmanager
    def _open(self, options: ClusterOptions) -> Iterator[RealKafka]:
        if self._unavailable is None:
            try:
                cluster = _starter()(configs_for_tests(options))
                cluster.open()
            except RuntimeError as error:
                self._unavailable = str(error)
        if self._unavailable is not None:
            pytest.fail(f"{OPTION}: {self._unavailable}", pytrace=False)
        try:
            yield RealKafka(cluster.bootstrap_servers, OPTION, is_ours=True)
        finally:
            cluster.close()


def _starter() -> Callable[[Mapping[str, str]], _Containers]:
    for entry_point in entry_points(group=GROUP):
        starter: Callable[[Mapping[str, str]], _Containers] = entry_point.load()
        return starter
    raise RuntimeError(f"the package that starts the containers is not installed: {REMEDY}")

"""The cluster of a scenario, in a form that does not show whether it is a real Kafka.

All changes of a scenario to the cluster's health are undone at its end, so the next scenario starts on a
healthy cluster.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from broker_sim_integration.clients.stopwatch import pause_ms
from broker_sim_integration.cluster_under_test.brokers import Brokers
from broker_sim_integration.cluster_under_test.clients import Clients
from broker_sim_integration.cluster_under_test.faults import Faults
from broker_sim_integration.cluster_under_test.metadata import Metadata
from broker_sim_integration.cluster_under_test.purges import Purges
from broker_sim_integration.cluster_under_test.topics import Topics
from broker_sim_integration.cluster_under_test.wait_until import WaitUntil

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.running_cluster import RunningCluster


class ClusterUnderTest:
    """A running cluster for one scenario; a context manager. Only one thread may use it.

    Its parts: `brokers` (roles and addresses), `clients`, `metadata`, `topics`, `faults`, `purges`
    and `wait_until`.
    """

    def __init__(self, running: RunningCluster, prefix: str, *, warm_topic: Topic | None = None) -> None:
        """Topic names begin with `prefix`; see `Topics.warm_up` for `warm_topic`."""
        self._cleanup = ExitStack()
        self.brokers = Brokers.of(running.addresses, running.controller_broker())
        self.clients = Clients(running.bootstrap_servers, self.brokers, self._cleanup)
        self.metadata = Metadata(self.brokers, self.clients)
        self.wait_until = WaitUntil(self.brokers, self.clients, self.metadata)
        self.faults = Faults(running.verbs)
        self.purges = Purges(running.purged, self.clients, self._cleanup)
        self.topics = Topics(
            prefix,
            warm_topic,
            brokers=self.brokers,
            clients=self.clients,
            faults=self.faults,
            wait_until=self.wait_until,
        )

    @property
    def first(self) -> int:
        """The broker with the active controller, if one of the brokers has it."""
        return self.brokers.first

    @property
    def second(self) -> int:
        """One of the two brokers that faults may hit."""
        return self.brokers.second

    @property
    def third(self) -> int:
        """The other broker that faults may hit."""
        return self.brokers.third

    def connect(self, broker: int) -> BrokerClient:
        """Open a new connection to a broker; it is closed at the end of the scenario."""
        return self.clients.connect(broker)

    def wait(self, duration_ms: float) -> None:
        """Wait between two steps."""
        pause_ms(duration_ms)

    def on_close(self, undo: Callable[[], object]) -> None:
        """Call `undo` at the end of the scenario, even if it fails."""
        self._cleanup.callback(undo)

    def close(self) -> None:
        """End all faults; returns when the cluster is healthy.

        The topics remain: after a deletion the followers' fetchers would back off for a while, which would
        disturb the next scenario.
        """
        try:
            self.faults.undo_all()
            if self.faults.any_so_far:
                for broker in self.brokers:
                    self.wait_until.serving(broker)
                for topic in self.topics.created:
                    self.wait_until.replicated(topic)
        finally:
            self._cleanup.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""The brokers' metadata of a topic's partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.clients import admin

if TYPE_CHECKING:
    from broker_sim_integration.clients.topics import PartitionDescription, Topic
    from broker_sim_integration.cluster_under_test.brokers import Brokers
    from broker_sim_integration.cluster_under_test.clients import Clients


class Metadata:
    """Sends requests on connections that scenarios do not time, by default to the first broker."""

    def __init__(self, brokers: Brokers, clients: Clients) -> None:
        self._brokers = brokers
        self._clients = clients

    def describe(self, topic: Topic, *, partition: int = 0, via: int | None = None) -> PartitionDescription:
        """Return one partition's metadata from the broker `via`."""
        return self.describe_all(topic.name, via=via)[partition]

    def describe_all(self, topic: str, *, via: int | None = None) -> dict[int, PartitionDescription]:
        """Return all partitions' metadata from the broker `via`, by index; empty for an unknown topic."""
        return admin.describe_partitions(self._clients.ask(via or self._brokers.first), topic)

    def listed_brokers(self) -> set[int]:
        """Return the broker ids in the first broker's metadata."""
        return set(admin.brokers_of(self._clients.ask(self._brokers.first)))

"""What brokers say of a topic's partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.clients import admin

if TYPE_CHECKING:
    from broker_sim_integration.clients.topics import PartitionDescription, Topic
    from broker_sim_integration.cluster_under_test.brokers import Brokers
    from broker_sim_integration.cluster_under_test.clients import Clients


class Metadata:
    """Asks on connections that scenarios do not measure; the first broker unless told otherwise."""

    def __init__(self, brokers: Brokers, clients: Clients) -> None:
        self._brokers = brokers
        self._clients = clients

    def describe(self, topic: Topic, *, partition: int = 0, via: int | None = None) -> PartitionDescription:
        """Return what the metadata of the broker `via` says of one partition."""
        return self.describe_all(topic.name, via=via)[partition]

    def describe_all(self, topic: str, *, via: int | None = None) -> dict[int, PartitionDescription]:
        """Return what that metadata says of all partitions; empty for an unknown topic."""
        return admin.describe_partitions(self._clients.ask(via or self._brokers.first), topic)

    def listed_brokers(self) -> set[int]:
        """Return the brokers that the first one lists."""
        return set(admin.brokers_of(self._clients.ask(self._brokers.first)))

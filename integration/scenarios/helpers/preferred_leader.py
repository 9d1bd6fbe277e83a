"""Gives a partition of a coordinator's topic another leader, while its brokers go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.clients.admin import elect_leader
from integration.clients.admin_requests import move
from integration.clients.topics import Topic

if TYPE_CHECKING:
    from integration.cluster_under_test.cluster_under_test import ClusterUnderTest

__all__ = ["elect", "prefer"]


def prefer(cluster: ClusterUnderTest, topic: str, partition: int, *order: int) -> None:
    """Give a partition another preferred leader, the first of `order`; the leader stays."""
    move(cluster.clients.ask(cluster.first), (topic, partition, order))
    cluster.wait_until(
        lambda: cluster.metadata.describe_all(topic)[partition].replicas == order,
        f"{topic}-{partition} has another preferred leader",
    )


def elect(cluster: ClusterUnderTest, topic: str, partition: int) -> None:
    """Let the preferred leader lead a partition."""
    named = Topic(topic, bytes(16), ())
    elect_leader(cluster.clients.ask(cluster.first), named, partition=partition)

    def is_elected() -> bool:
        found = cluster.metadata.describe_all(topic)[partition]
        return found.leader == found.replicas[0]

    cluster.wait_until(is_elected, f"{topic}-{partition} has its preferred leader")

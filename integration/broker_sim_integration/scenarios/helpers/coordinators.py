"""The next coordinator of a group whose coordinator was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim_integration.clients.groups import find_coordinators

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.stopwatch import Moment
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest


class Successor(NamedTuple):
    """The broker that became the coordinator of a group after another one."""

    broker: int
    named_ms: Moment
    """Time at which FindCoordinator first returned this broker; it may still be loading the group then."""


def successor_of(cluster: ClusterUnderTest, group: GroupUnderTest) -> Successor:
    """Wait until FindCoordinator returns another broker than the group's previous coordinator; return that broker."""
    asked = cluster.clients.ask(cluster.first)
    found: list[int] = []

    def moved() -> bool:
        answer = find_coordinators(asked, group.name).message.coordinators[0]
        found[:] = [answer.node_id]
        return answer.error_code == ErrorCode.NONE and answer.node_id != group.coordinator

    named_ms = cluster.wait_until(moved, f"{group.name} has another coordinator")
    return Successor(found[0], named_ms)


def next_coordinator(
    cluster: ClusterUnderTest, group: GroupUnderTest, is_loaded: Callable[[BrokerClient], bool]
) -> BrokerClient:
    """Return a connection to the next coordinator of a group, once `is_loaded(connection)` is true.

    Loaded records are visible as soon as the followers of the offsets partition have fetched them.
    """
    client = cluster.connect(successor_of(cluster, group).broker)
    cluster.wait_until(lambda: is_loaded(client), f"{group.name} is loaded")
    return client

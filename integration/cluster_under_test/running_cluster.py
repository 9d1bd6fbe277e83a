"""A running cluster of three brokers, real or simulated: all that the comparison needs of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from integration.broker_verbs import Fault
from integration.clients.admin import brokers_of, quorum_leader
from integration.clients.raw_client import RawConnection
from integration.reference.clusters.bootstrap import BootstrapCluster
from integration.reference.errors import ReferenceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim import Cluster
    from integration.broker_verbs import BrokerVerbs
    from integration.reference.clusters.cluster import ReferenceCluster

__all__ = ["BROKERS", "RunningCluster", "kafka_cluster", "simulated_cluster"]

BROKERS = 3


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """Three brokers that clients reach; see `BrokerVerbs` for threads."""

    bootstrap_servers: str
    addresses: Mapping[int, tuple[str, int]]
    """Host and port of every broker, by its number."""
    verbs: BrokerVerbs
    faults: frozenset[Fault]
    """What `verbs` can do here."""
    controller_broker: Callable[[], int | None]
    """Returns the broker whose loss would take the active controller along, if there is one."""
    is_ours: bool
    """Whether it ends with the run; on somebody else's cluster nothing may stay behind."""


def kafka_cluster(reference: ReferenceCluster) -> RunningCluster:
    """Return a real cluster that runs; `ReferenceUnavailableError` if it has not three brokers."""
    host, port = reference.bootstrap_servers.split(",")[0].rsplit(":", 1)
    with RawConnection(host, int(port)) as connection:
        addresses = dict(sorted(brokers_of(connection).items()))
    if len(addresses) != BROKERS:
        raise ReferenceUnavailableError(
            f"scenarios need {BROKERS} brokers, {reference.bootstrap_servers} has {len(addresses)}"
        )

    def active_controller() -> int:
        # Every node is broker and controller at once.
        with RawConnection(*next(iter(addresses.values()))) as connection:
            return quorum_leader(connection)

    return RunningCluster(
        bootstrap_servers=reference.bootstrap_servers,
        addresses=addresses,
        verbs=reference,
        faults=reference.faults,
        controller_broker=active_controller,
        is_ours=reference.kind != BootstrapCluster.kind,
    )


def simulated_cluster(cluster: Cluster) -> RunningCluster:
    """Return a simulated cluster that runs; its controller is a process of its own."""
    return RunningCluster(
        bootstrap_servers=cluster.bootstrap_servers,
        addresses={broker: cluster.address(broker) for broker in range(1, BROKERS + 1)},
        verbs=cluster,
        faults=frozenset(Fault),
        controller_broker=lambda: None,
        is_ours=True,
    )

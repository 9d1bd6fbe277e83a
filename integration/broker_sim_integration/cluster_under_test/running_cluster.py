"""A running cluster of three brokers, real or simulated, with all that the comparison needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_sim_integration.broker_verbs import Fault, Reading
from broker_sim_integration.clients.admin import brokers_of, quorum_leader
from broker_sim_integration.clients.raw_client import RawConnection
from broker_sim_integration.cluster_under_test.purges import purged_in_log
from broker_sim_integration.reference.clusters.bootstrap import BootstrapCluster
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.simulator.verbs import SimulatorVerbs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim_integration.broker_verbs import BrokerVerbs
    from broker_sim_integration.reference.clusters.cluster import ReferenceCluster
    from broker_sim_integration.simulator.process import SimulatorProcess

BROKERS = 3


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """Three brokers that clients can reach; see `BrokerVerbs` for threads."""

    bootstrap_servers: str
    addresses: Mapping[int, tuple[str, int]]
    """Host and port of each broker, by broker id."""
    verbs: BrokerVerbs
    faults: frozenset[Fault]
    """The faults that `verbs` can cause here."""
    readings: frozenset[Reading]
    """The readings that are possible here."""
    purged: Callable[[int], int]
    """Returns the number of operations purged by a broker's purgatories, with `Reading.PURGES`."""
    controller_broker: Callable[[], int | None]
    """Returns the broker that also runs the active controller, or None."""
    is_ours: bool
    """Whether the cluster ends with the run; otherwise nothing may be left behind on it."""


def kafka_cluster(reference: ReferenceCluster) -> RunningCluster:
    """Return a running real cluster; raise `ReferenceUnavailableError` if it has not three brokers."""
    host, port = reference.bootstrap_servers.split(",")[0].rsplit(":", 1)
    with RawConnection(host, int(port)) as connection:
        addresses = dict(sorted(brokers_of(connection).items()))
    if len(addresses) != BROKERS:
        raise ReferenceUnavailableError(
            f"scenarios need {BROKERS} brokers, {reference.bootstrap_servers} has {len(addresses)}"
        )

    def active_controller() -> int | None:
        with RawConnection(*next(iter(addresses.values()))) as connection:
            leader = quorum_leader(connection)
        return leader if leader in addresses else None  # otherwise the controller is a node of its own

    return RunningCluster(
        bootstrap_servers=reference.bootstrap_servers,
        addresses=addresses,
        verbs=reference,
        faults=reference.faults,
        readings=reference.readings,
        purged=lambda broker: purged_in_log(reference.broker_log(broker)),
        controller_broker=active_controller,
        is_ours=reference.kind != BootstrapCluster.kind,
    )


def simulated_cluster(simulator: SimulatorProcess) -> RunningCluster:
    """Return a running simulated cluster; none of its brokers runs the controller."""
    addresses = {}
    for broker, address in enumerate(simulator.bootstrap_servers.split(","), 1):
        host, port = address.rsplit(":", 1)
        addresses[broker] = host, int(port)
    verbs = SimulatorVerbs(simulator)
    return RunningCluster(
        bootstrap_servers=simulator.bootstrap_servers,
        addresses=addresses,
        verbs=verbs,
        faults=frozenset(Fault),
        readings=frozenset(Reading),
        purged=verbs.purged,
        controller_broker=lambda: None,
        is_ours=True,
    )

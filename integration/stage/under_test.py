"""The cluster that a scenario runs against: a real Kafka or the simulator, behind one protocol.

A scenario sees `ClusterUnderTest` only, so it cannot know on which side it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from integration.clients.admin import brokers_of, quorum_leader
from integration.clients.raw_client import RawConnection
from integration.reference.bootstrap import BootstrapCluster
from integration.reference.cluster import Fault
from integration.reference.errors import ReferenceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.cluster.cluster import Cluster
    from integration.reference.cluster import ReferenceCluster

__all__ = ["BROKERS", "ClusterUnderTest", "KafkaUnderTest", "SimulatorUnderTest"]

BROKERS = 3


class ClusterUnderTest(Protocol):
    """A running cluster of three brokers that can be hurt. One thread hurts it."""

    @property
    def side(self) -> str:
        """``kafka`` or ``sim``."""

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' addresses for a client."""

    @property
    def addresses(self) -> Mapping[int, tuple[str, int]]:
        """Host and port of every broker, by its number."""

    @property
    def faults(self) -> frozenset[Fault]:
        """What can be done to a broker."""

    @property
    def is_ours(self) -> bool:
        """Whether it ends with the run; on somebody else's cluster nothing may stay behind."""

    def controller_host(self) -> int | None:
        """Return the broker whose loss would take the active controller along, if any."""

    def pause(self, broker: int) -> None:
        """Freeze a broker."""

    def resume(self, broker: int) -> None:
        """Let it go on."""

    def kill(self, broker: int) -> None:
        """End a broker without a word."""

    def start(self, broker: int) -> None:
        """Start a killed broker on what it has on disk; does not wait until it serves."""

    def disconnect(self, broker: int) -> None:
        """Cut a broker off from the others; clients still reach it."""

    def reconnect(self, broker: int) -> None:
        """Undo that."""

    def disconnect_clients(self, broker: int) -> None:
        """Cut a broker off from its clients; the others still reach it."""

    def reconnect_clients(self, broker: int) -> None:
        """Undo that."""


class KafkaUnderTest:
    """A started `ReferenceCluster` of three brokers; any other number is an error."""

    side = "kafka"

    def __init__(self, cluster: ReferenceCluster) -> None:
        self._cluster = cluster
        self.bootstrap_servers = cluster.bootstrap_servers
        self.faults = cluster.faults
        self.is_ours = cluster.kind != BootstrapCluster.kind
        self.addresses: Mapping[int, tuple[str, int]] = self._ask_addresses()
        if len(self.addresses) != BROKERS:
            raise ReferenceUnavailableError(
                f"scenarios need {BROKERS} brokers, {self.bootstrap_servers} has "
                f"{len(self.addresses)}"
            )

    def _ask_addresses(self) -> dict[int, tuple[str, int]]:
        host, port = self.bootstrap_servers.split(",")[0].rsplit(":", 1)
        with RawConnection(host, int(port)) as connection:
            return dict(sorted(brokers_of(connection).items()))

    def controller_host(self) -> int | None:
        """Ask the quorum: every node is broker and controller at once."""
        with RawConnection(*next(iter(self.addresses.values()))) as connection:
            return quorum_leader(connection)

    def pause(self, broker: int) -> None:
        """Freeze the process or container."""
        self._cluster.pause(broker)

    def resume(self, broker: int) -> None:
        """Let it go on."""
        self._cluster.resume(broker)

    def kill(self, broker: int) -> None:
        """Send SIGKILL."""
        self._cluster.kill(broker)

    def start(self, broker: int) -> None:
        """Start it again."""
        self._cluster.start_broker(broker)

    def disconnect(self, broker: int) -> None:
        """Drop all packets between it and the others."""
        self._cluster.disconnect(broker)

    def reconnect(self, broker: int) -> None:
        """Let the packets pass."""
        self._cluster.reconnect(broker)

    def disconnect_clients(self, broker: int) -> None:
        """Drop all packets between it and its clients."""
        self._cluster.disconnect_clients(broker)

    def reconnect_clients(self, broker: int) -> None:
        """Let the packets pass."""
        self._cluster.reconnect_clients(broker)


class SimulatorUnderTest:
    """A started `broker_sim.cluster.Cluster`, whose controller dies with no broker."""

    side = "sim"
    is_ours = True
    faults = frozenset(Fault)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.bootstrap_servers = cluster.bootstrap_servers
        self.addresses: Mapping[int, tuple[str, int]] = {
            broker: cluster.address(broker) for broker in range(1, BROKERS + 1)
        }

    def controller_host(self) -> int | None:
        """Return None: the simulated controller is a process of its own."""
        return None

    def pause(self, broker: int) -> None:
        """Freeze the simulated process."""
        self._cluster.pause(broker)

    def resume(self, broker: int) -> None:
        """Let it go on."""
        self._cluster.resume(broker)

    def kill(self, broker: int) -> None:
        """End the simulated process."""
        self._cluster.kill(broker)

    def start(self, broker: int) -> None:
        """Start it again on its logs."""
        self._cluster.start(broker, wait=False)

    def disconnect(self, broker: int) -> None:
        """Cut its links."""
        self._cluster.disconnect(broker)

    def reconnect(self, broker: int) -> None:
        """Mend its links."""
        self._cluster.reconnect(broker)

    def disconnect_clients(self, broker: int) -> None:
        """Hold back what passes on its sockets."""
        self._cluster.disconnect_clients(broker)

    def reconnect_clients(self, broker: int) -> None:
        """Let it pass."""
        self._cluster.reconnect_clients(broker)

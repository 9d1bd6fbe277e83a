"""A Kafka that is already running at a given address: it can be compared, but faults are not possible."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from broker_sim_integration.reference.clusters.cluster import ReferenceCluster
from broker_sim_integration.reference.clusters.listed_brokers import listed_brokers
from broker_sim_integration.reference.errors import ReferenceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker_sim_integration.broker_verbs import Fault

ANSWER_TIMEOUT_S = 15.0


class BootstrapCluster(ReferenceCluster):
    """A cluster that is already running; faults raise `UnsupportedFaultError`.

    Its brokers cannot be configured: `configs` with any name raises `ReferenceUnavailableError`.
    """

    kind: ClassVar[str] = "bootstrap"
    faults: ClassVar[frozenset[Fault]] = frozenset()

    def __init__(self, address: str, configs: Collection[str] = ()) -> None:
        if configs:
            raise ReferenceUnavailableError(
                f"{', '.join(sorted(configs))} cannot be set on {address}; "
                "a reference that is started for you can have them: --reference jvm"
            )
        self._address = address
        self._addresses: dict[int, str] = {}

    @property
    def bootstrap_servers(self) -> str:
        """The address passed to the constructor."""
        return self._address

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The ids of the brokers in the metadata at the start."""
        return tuple(self._addresses)

    def address(self, broker: int) -> str:
        """Return the address that the broker advertises."""
        return self._addresses[broker]

    def open(self) -> None:
        """Request the list of brokers; raise `ReferenceUnavailableError` if no broker responds."""
        for address in self._address.split(","):
            with suppress(OSError):
                brokers = listed_brokers(address, timeout_s=ANSWER_TIMEOUT_S)
                self._addresses = dict(sorted(brokers.items()))
                return
        raise ReferenceUnavailableError(f"no Kafka responds at {self._address}; check the address and the listeners")

    def close(self) -> None:
        """Do nothing: the cluster keeps running after the comparison."""

    def describe(self) -> dict[str, Any]:
        """Return the facts of this machine, which may not be that of the brokers, and the address."""
        return {**super().describe(), "bootstrap_servers": self._address}

    def _check_nodes(self) -> None:
        """Do nothing: the processes of the nodes are not visible from here."""

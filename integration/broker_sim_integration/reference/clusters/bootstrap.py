"""A Kafka that is already running at a given address: it can be compared, but gets no faults."""

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
    """A cluster that runs already; faults raise `UnsupportedFaultError`.

    Broker configurations cannot be set from here: naming some in `configs` is an error.
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
        """The address that was given."""
        return self._address

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The brokers that the cluster listed at the start."""
        return tuple(self._addresses)

    def address(self, broker: int) -> str:
        """Return the address that the broker advertises."""
        return self._addresses[broker]

    def open(self) -> None:
        """Ask for the brokers; `ReferenceUnavailableError` when none answers."""
        for address in self._address.split(","):
            with suppress(OSError):
                found = listed_brokers(address, timeout_s=ANSWER_TIMEOUT_S)
                self._addresses = dict(sorted(found.items()))
                return
        raise ReferenceUnavailableError(f"no Kafka answers at {self._address}; check the address and the listeners")

    def close(self) -> None:
        """Do nothing: it keeps running after the comparison."""

    def describe(self) -> dict[str, Any]:
        """Return the facts of this machine, which is not that of the brokers, and the address."""
        return {**super().describe(), "bootstrap_servers": self._address}

    def _check_nodes(self) -> None:
        """Do nothing: its processes are not visible from here."""

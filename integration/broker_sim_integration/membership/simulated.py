"""The table on simulated brokers, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim_integration.membership.table import CONFIGS, play

if TYPE_CHECKING:
    from broker_sim.cluster.async_cluster import AsyncCluster


class _Simulated:
    """The machine of simulated brokers."""

    def __init__(self, cluster: AsyncCluster) -> None:
        self._cluster = cluster

    async def add(self, broker: int) -> None:
        await self._cluster.add_broker(broker)

    async def stop(self, broker: int) -> None:
        await self._cluster.stop(broker)

    async def start(self, broker: int, *, new_port: bool = False) -> None:
        await self._cluster.start(broker, new_ports=new_port)

    async def remove(self, broker: int) -> None:
        await self._cluster.remove_broker(broker)

    def address(self, broker: int) -> tuple[str, int]:
        return self._cluster.listeners.addresses_of("PLAINTEXT")[broker]


def play_on_simulated(case: str) -> list[Any]:
    """Return the observations of the case."""
    with VirtualCluster(1, configs=CONFIGS, as_version="4.4") as cluster:
        return cluster.wait_for(play(_Simulated(cluster.inside), case))

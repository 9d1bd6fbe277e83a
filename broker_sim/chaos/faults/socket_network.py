"""The network between the brokers of a cluster and clients of other processes, which can be cut."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from broker_sim.errors import WrongStateError
from broker_sim.runtime.virtual.network import ANY

if TYPE_CHECKING:
    from broker_sim.cluster.async_cluster import AsyncCluster


class SocketNetwork:
    """A `ClientNetwork` of real sockets: whoever cuts a broker off one way does it both ways.

    A cut ends with the broker's process: one that is started again can be reached.
    """

    def __init__(self, kafka: AsyncCluster) -> None:
        self._kafka = kafka
        self._brokers = {
            f"{host}:{port}": broker_id for broker_id in kafka.nodes.nodes for host, port in [kafka.address(broker_id)]
        }
        self._cuts: Counter[int] = Counter()

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass between all clients and a broker. Raises WrongStateError for a dead one."""
        broker_id = self._brokers[target if source == ANY else source]
        self._kafka.disconnect_clients(broker_id)
        self._cuts[broker_id] += 1

    def mend(self, source: str, target: str) -> None:
        """Undo `cut`; what was held back arrives."""
        broker_id = self._brokers[target if source == ANY else source]
        self._cuts[broker_id] -= 1
        if not self._cuts[broker_id]:
            with suppress(WrongStateError):
                self._kafka.reconnect_clients(broker_id)

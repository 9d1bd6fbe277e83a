"""Faults of links and connections that several actions cause at once; each ends by itself.

A link is cut as long as anyone cuts it, and as slow as the slowest one makes it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from broker_sim.runtime.links import CONTROLLER_ID, LinkFault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.cluster.nodes.nodes import Nodes


class ClientNetwork(Protocol):
    """The network between clients and brokers: `ANY` or a host, or `host:port` of a broker."""

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass from one to the other; it waits, as TCP does."""

    def mend(self, source: str, target: str) -> None:
        """Undo `cut`."""


class CombinedFaults:
    """The faults that are in force on one cluster."""

    def __init__(self, nodes: Nodes, network: ClientNetwork) -> None:
        self._nodes = nodes
        self._network = network
        self._link_faults: dict[tuple[int, ...], list[LinkFault]] = {}
        self._cuts: Counter[tuple[str, str]] = Counter()

    def links_of(self, broker_id: int) -> list[tuple[int, ...]]:
        """Return the links between a broker and all other nodes, both ways."""
        others = [each for each in (CONTROLLER_ID, *self._nodes.nodes) if each != broker_id]
        return [link for each in others for link in ((broker_id, each), (each, broker_id))]

    def fault_links(self, links: Sequence[tuple[int, ...]], fault: LinkFault) -> Callable[[], object]:
        """Add a fault to each link; return what takes it away."""
        for link in links:
            self._link_faults.setdefault(link, []).append(fault)
            self._set_link(link)

        def undo() -> None:
            for link in links:
                self._link_faults[link].remove(fault)
                self._set_link(link)

        return undo

    def _set_link(self, link: tuple[int, ...]) -> None:
        faults = self._link_faults[link]
        drop = any(fault.drop for fault in faults)
        delay_ms = max((fault.delay_ms for fault in faults), default=0)
        source, target = link
        self._nodes.links.set_fault(source, target, LinkFault(drop, delay_ms))

    def cut_clients(self, *ways: tuple[str, str]) -> Callable[[], object]:
        """Cut the network from one end to another, each way by itself; return what mends it."""
        for way in ways:
            self._network.cut(*way)
            self._cuts[way] += 1

        def mend() -> None:
            for way in ways:
                self._cuts[way] -= 1
                if not self._cuts[way]:
                    self._network.mend(*way)

        return mend

"""Frozen snapshots of the purgatories of a cluster: what the verb `purgatory` returns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker_sim_purgatory import ParkedOperation

    from broker_sim.cluster.nodes.nodes import Nodes


@dataclass(frozen=True, slots=True)
class PurgatoryStatus:
    """One purgatory of one live broker, and what is parked in it."""

    broker: int
    name: str
    """`Produce`, `Fetch`, `DeleteRecords`, `ElectLeader`, `ShareFetch`, `Rebalance`, `Heartbeat` or `ThrottledChannel`."""
    watched: int
    num_delayed: int
    completed: int
    expired: int
    purged: int
    """Completed entries that purges removed from the watch lists."""
    parked: tuple[ParkedOperation, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        parked = [{**asdict(one), "keys": [str(key) for key in one.keys]} for one in self.parked]
        return {
            "name": self.name,
            "watched": self.watched,
            "num_delayed": self.num_delayed,
            "completed": self.completed,
            "expired": self.expired,
            "purged": self.purged,
            "parked": parked,
        }


class PurgatoriesStatus(tuple[PurgatoryStatus, ...]):
    """All purgatories of all live brokers, broker by broker."""

    __slots__ = ()

    def of(self, broker_id: int, name: str) -> PurgatoryStatus:
        """Return one purgatory, such as `of(1, "Produce")`. LookupError if it is not there."""
        for purgatory in self:
            if (purgatory.broker, purgatory.name) == (broker_id, name):
                return purgatory
        known = ", ".join(f"{one.broker} {one.name}" for one in self) or "none"
        raise LookupError(f"broker {broker_id} has no purgatory {name!r}; there are {known}")

    def to_json(self) -> dict[str, Any]:
        """Return plain values, grouped by broker."""
        brokers: dict[int, list[dict[str, Any]]] = {}
        for purgatory in self:
            brokers.setdefault(purgatory.broker, []).append(purgatory.to_json())
        return {"brokers": [{"id": broker, "purgatories": rows} for broker, rows in brokers.items()]}


def purgatories_status(nodes: Nodes) -> PurgatoriesStatus:
    """Return every purgatory of every live broker, with the operations that are parked in it."""
    return PurgatoriesStatus(
        PurgatoryStatus(
            broker_id,
            statistics.name,
            statistics.watched,
            statistics.num_delayed,
            statistics.completed,
            statistics.expired,
            statistics.purged,
            tuple(purgatory.parked()),
        )
        for broker_id, broker in nodes.brokers.items()
        for purgatory in broker.purgatories
        for statistics in [purgatory.statistics()]
    )

"""Faults of brokers, remembered so that they can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.clients.stopwatch import now_ms

if TYPE_CHECKING:
    from integration.stage.under_test import ClusterUnderTest

__all__ = ["Faults"]


class Faults:
    """What has been done to a cluster; the base of `Stage`. One thread hurts it."""

    _cluster: ClusterUnderTest

    def __init__(self) -> None:
        self._paused: set[int] = set()
        self._killed: set[int] = set()
        self._disconnected: set[int] = set()
        self._without_clients: set[int] = set()
        self._hurt = False

    def pause(self, broker: int) -> float:
        """Freeze a broker; returns the moment (`now_ms`)."""
        self._hurt = True
        self._cluster.pause(broker)
        self._paused.add(broker)
        return now_ms()

    def resume(self, broker: int) -> float:
        """Let a frozen broker go on; returns the moment."""
        self._cluster.resume(broker)
        self._paused.discard(broker)
        return now_ms()

    def kill(self, broker: int) -> float:
        """End a broker without a word; returns the moment."""
        self._hurt = True
        self._cluster.kill(broker)
        self._paused.discard(broker)
        self._without_clients.discard(broker)
        self._killed.add(broker)
        return now_ms()

    def start(self, broker: int) -> float:
        """Start a killed broker; returns the moment, not waiting until it serves."""
        self._cluster.start(broker)
        self._killed.discard(broker)
        return now_ms()

    def disconnect(self, broker: int) -> float:
        """Cut a broker off from the others; returns the moment."""
        self._hurt = True
        self._cluster.disconnect(broker)
        self._disconnected.add(broker)
        return now_ms()

    def reconnect(self, broker: int) -> float:
        """Undo that; returns the moment."""
        self._cluster.reconnect(broker)
        self._disconnected.discard(broker)
        return now_ms()

    def disconnect_clients(self, broker: int) -> float:
        """Cut a broker off from its clients; returns the moment."""
        self._hurt = True
        self._cluster.disconnect_clients(broker)
        self._without_clients.add(broker)
        return now_ms()

    def reconnect_clients(self, broker: int) -> float:
        """Undo that; returns the moment."""
        self._cluster.reconnect_clients(broker)
        self._without_clients.discard(broker)
        return now_ms()

    def undo_faults(self) -> None:
        """Undo what is left."""
        for broker in list(self._without_clients):
            self.reconnect_clients(broker)
        for broker in list(self._disconnected):
            self.reconnect(broker)
        for broker in list(self._paused):
            self.resume(broker)
        for broker in list(self._killed):
            self.start(broker)

    def can_answer(self, broker: int) -> bool:
        """Tell whether a broker is neither frozen nor dead nor out of the clients' reach."""
        return broker not in self._paused | self._killed | self._without_clients

    @property
    def all_well(self) -> bool:
        """Whether no broker is frozen, dead or cut off now."""
        return not self._paused | self._killed | self._disconnected | self._without_clients

    @property
    def was_hurt(self) -> bool:
        """Whether there has been any fault, though it be undone."""
        return self._hurt

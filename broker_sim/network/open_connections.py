"""The connections of one broker; those that nobody uses are closed after a while.

Mirrors the channels and the ``IdleExpiryManager`` of ``org.apache.kafka.common.network.Selector``.

Deliberate difference: Kafka looks for idle connections in every poll. Here one sweep does it, ten
times in `connections.max.idle.ms`; so nothing has to be timed when bytes come or go, and a
connection may live longer by up to two sweeps. As with Kafka, one that waits for its answer counts
as idle too, and a negative limit means that there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.process import PeriodicTask

if TYPE_CHECKING:
    from broker_sim.network.connection import Connection
    from broker_sim.runtime.process import Process

__all__ = ["OpenConnections"]

log = get_logger(__name__)

SWEEPS = 10
"""How often idle connections are looked for within the time after which they are closed."""


class OpenConnections:
    """Knows when each connection was last used; all of it runs on the scheduler's thread."""

    def __init__(self, process: Process, max_idle_ms: int) -> None:
        self._process = process
        self._max_idle_ms = max_idle_ms
        self._idle_since_ms: dict[Connection, int] = {}
        self._held = False
        self._sweep_task: PeriodicTask | None = None
        if max_idle_ms >= 0:
            self._sweep_task = PeriodicTask(process, max(max_idle_ms // SWEEPS, 1), self._sweep)

    def __len__(self) -> int:
        return len(self._idle_since_ms)

    def add(self, connection: Connection) -> None:
        """Take a new connection in."""
        self._idle_since_ms[connection] = self._process.clock.now_ms()
        if self._held:
            connection.hold()

    def discard(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._idle_since_ms.pop(connection, None)

    def hold(self) -> None:
        """Let nothing pass on any of them, nor on those that come, until `release`."""
        self._held = True
        for connection in self._idle_since_ms:
            connection.hold()

    def release(self) -> None:
        """Let pass what has waited, and all that follows."""
        self._held = False
        for connection in list(self._idle_since_ms):
            connection.release()

    def _sweep(self) -> None:
        now_ms = self._process.clock.now_ms()
        for connection, idle_since_ms in list(self._idle_since_ms.items()):
            if connection.is_active:
                connection.is_active = False
                self._idle_since_ms[connection] = now_ms
            elif now_ms - idle_since_ms >= self._max_idle_ms:
                log.debug("connection_idle", peer=connection.peer, max_idle_ms=self._max_idle_ms)
                connection.abort()

    def abort(self) -> None:
        """Break all of them off and look after them no more."""
        if self._sweep_task is not None:
            self._sweep_task.cancel()
        for connection in list(self._idle_since_ms):
            connection.abort()

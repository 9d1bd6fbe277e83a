"""The connections of one broker, with limits on their number, their rate and their idle time.

Mirrors the channels and the `IdleExpiryManager` of `org.apache.kafka.common.network.Selector`, and what a
`Processor` does with connections above `max.connections`. As in Kafka, a connection that waits for a response
counts as idle too, and a negative time means no limit. `ConnectionQuotas` has the limits.

Deliberate differences: Kafka looks for idle connections in every poll. Here a sweep looks for them ten
times in `connections.max.idle.ms`, so that reads and writes need no clock; a connection may live longer
by up to two sweeps. If there are too many connections, the least recently used one of the broker is closed;
in Kafka it is that of the processor that notices first.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING

from broker_sim.network.accept_queue import AcceptQueue
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.process import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker_sim.network.connection import Connection
    from broker_sim.quota import ConnectionQuotas
    from broker_sim.runtime.process import Process
    from broker_sim.security import KafkaPrincipal

log = get_logger(__name__)

SWEEPS = 10
"""Number of sweeps for idle connections in `connections.max.idle.ms`."""


class _Idle:
    """A connection's last use as seen by sweeps, and the time in ms of the first sweep that saw it."""

    __slots__ = ("last_use", "since_ms")

    def __init__(self, now_ms: int) -> None:
        self.last_use = -1
        self.since_ms = now_ms


class OpenConnections:
    """Applies the limits to all connections of a broker. Thread rule: only the scheduler's thread."""

    def __init__(self, process: Process, max_idle_ms: int, quotas: ConnectionQuotas) -> None:
        self._process = process
        self._log = log.bind(process.clock, node=process.name)
        self._max_idle_ms = max_idle_ms
        self._quotas = quotas
        quotas.on_change = self._follow_limits
        self._open: dict[Connection, _Idle] = {}
        self._queues: dict[str, AcceptQueue] = {}
        """Accept queues by listener."""
        self._refused: set[Connection] = set()
        """Connections above the rate of their address, until they are closed."""
        self._held: set[str] = set()
        """The listeners whose connections are held."""
        self._sweep_task: PeriodicTask | None = None
        if max_idle_ms >= 0:
            self._sweep_task = PeriodicTask(process, max(max_idle_ms // SWEEPS, 1), self._sweep)

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> None:
        """Accept a new connection as soon as the limits allow it; a paused broker decides later."""
        queue = self._queues.get(connection.listener)
        if queue is None:
            queue = AcceptQueue(self._process, connection.listener, self._quotas, self._take)
            self._queues[connection.listener] = queue
        queue.add(connection)

    def _take(self, connection: Connection) -> None:
        """Accept a connection, or close it."""
        listener, ip = connection.listener, connection.ip
        delay_ms = self._quotas.accept_from(listener, ip)
        if delay_ms:
            connection.hold()
            self._refused.add(connection)
            self._process.call_later(delay_ms, self._close_refused, connection)
            return
        limit = self._quotas.limit_reached(ip)
        if limit is not None:
            self._reject(connection, f"{ip} already has {limit} connections, the maximum")
            return
        self._open[connection] = _Idle(self._process.clock.now_ms())
        self._quotas.inc(listener, ip)
        if listener in self._held:
            connection.hold()
        elif connection.is_held:
            connection.release()
        self._close_least_recently_used()

    def _reject(self, connection: Connection, reason: str) -> None:
        self._log.warning("connection_rejected", peer=connection.peer, reason=reason)
        connection.abort()

    def _close_least_recently_used(self) -> None:
        """Make room for connections between brokers, or adapt to a lower limit."""
        closing = self._quotas.closing
        if not closing:
            return
        others = [each for each in self._open if not self._quotas.is_protected(each.listener)]
        for connection in nsmallest(closing, others, key=lambda each: each.last_use):
            self._forget(connection)
            self._reject(connection, "the broker has more connections than max.connections")

    def discard(self, connection: Connection) -> None:
        """Remove a closed connection, and accept a waiting one instead."""
        self._refused.discard(connection)
        if connection in self._open:
            self._forget(connection)
        elif not any(queue.discard(connection) for queue in self._queues.values()):
            return
        self._process.deliver(self._serve_waiting)

    def _forget(self, connection: Connection) -> None:
        del self._open[connection]
        self._quotas.dec(connection.listener, connection.ip)

    def _follow_limits(self) -> None:
        self._close_least_recently_used()
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        for queue in self._queues.values():
            queue.serve()

    def _close_refused(self, connection: Connection) -> None:
        if connection in self._refused:
            self._refused.remove(connection)
            connection.abort()

    def hold(self, listener: str) -> None:
        """Hold the connections of the listener, including new ones, until `release`."""
        self._held.add(listener)
        for connection in self._open:
            if connection.listener == listener:
                connection.hold()

    def release(self, listener: str) -> None:
        """Deliver what has waited, and stop holding the listener's connections."""
        self._held.discard(listener)
        for connection in list(self._open):
            if connection.listener == listener:
                connection.release()

    def end_those_of(self, principal: KafkaPrincipal) -> None:
        """Abort the connections that have logged in as this principal."""
        for connection in list(self._open):
            if connection.principal == principal:
                connection.abort()

    def _sweep(self) -> None:
        now_ms = self._process.clock.now_ms()
        for connection, idle in list(self._open.items()):
            if connection.last_use != idle.last_use:
                idle.last_use = connection.last_use
                idle.since_ms = now_ms
            elif now_ms - idle.since_ms >= self._max_idle_ms:
                self._log.debug("connection_idle", peer=connection.peer, max_idle_ms=self._max_idle_ms)
                connection.abort()

    @property
    def all(self) -> Collection[Connection]:
        """The connections that the broker has accepted."""
        return self._open.keys()

    def of_listener(self, listener: str) -> list[Connection]:
        """Return the connections of one listener that the broker has accepted."""
        return [each for each in self._open if each.listener == listener]

    def abort(self, listener: str) -> None:
        """Abort all connections of one listener, including those that are not accepted yet."""
        if listener in self._queues:
            self._queues[listener].abort()
        refused = [each for each in self._refused if each.listener == listener]
        self._refused.difference_update(refused)
        for connection in (*refused, *self.of_listener(listener)):
            connection.abort()

    def abort_all(self) -> None:
        """Abort all connections and stop the sweeps."""
        if self._sweep_task is not None:
            self._sweep_task.cancel()
        self._quotas.on_change = lambda: None
        for queue in self._queues.values():
            queue.abort()
        refused, self._refused = self._refused, set()
        for connection in (*refused, *self._open):
            connection.abort()

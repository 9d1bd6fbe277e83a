"""The connections of one broker: how many there may be, how fast they may come, how long they may be idle.

Mirrors `ConnectionQuotas` and the channels and the `IdleExpiryManager` of
`org.apache.kafka.common.network.Selector`. As in Kafka, a connection that waits for its answer counts
as idle too, and a negative time means no limit.

    above `max.connections`          the connection waits, unserved, until another one ends
    above `max.connections.per.ip`   the connection is closed at once
    above a rate of `ConnectionQuotas`   it waits with all behind it, or is closed after a while unserved

Deliberate difference: Kafka looks for idle connections in every poll. Here a sweep looks for them ten
times in `connections.max.idle.ms`, so that no clock is read when bytes come or go; a connection may
live longer by up to two sweeps.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from broker_sim.config.definition import MAX_INT
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.process import PeriodicTask, ProcessState

if TYPE_CHECKING:
    from broker_sim.network.connection import Connection
    from broker_sim.quota import ConnectionQuotas
    from broker_sim.runtime.process import Process
    from broker_sim.security import KafkaPrincipal

__all__ = ["OpenConnections"]

log = get_logger(__name__)

SWEEPS = 10
"""How often in `connections.max.idle.ms` idle connections are looked for."""


class OpenConnections:
    """Knows when each connection was last used. Thread rule: only the scheduler's thread."""

    def __init__(
        self,
        process: Process,
        max_idle_ms: int,
        *,
        max_connections: int = MAX_INT,
        max_connections_per_ip: int = MAX_INT,
        quotas: ConnectionQuotas | None = None,
    ) -> None:
        self._process = process
        self._log = log.bind(process.clock, node=process.name)
        self._max_idle_ms = max_idle_ms
        self._max_connections = max_connections
        self._max_connections_per_ip = max_connections_per_ip
        self._idle_since_ms: dict[Connection, int] = {}
        self._connections_by_ip: Counter[str] = Counter()
        self._waiting: deque[Connection] = deque()
        """Connections above `max.connections` or made while the broker is paused: nothing passes."""
        self._quotas = quotas
        self._next: Connection | None = None
        """The connection for which the listener stands still, and all others behind it."""
        self._refused: set[Connection] = set()
        """Connections above the rate of their address, until they are closed."""
        self._held: set[str] = set()
        """The listeners on which nothing passes."""
        self._sweep_task: PeriodicTask | None = None
        if max_idle_ms >= 0:
            self._sweep_task = PeriodicTask(process, max(max_idle_ms // SWEEPS, 1), self._sweep)

    def __len__(self) -> int:
        return len(self._idle_since_ms)

    def add(self, connection: Connection) -> None:
        """Look after a new connection, if there may be one more; a paused broker decides later."""
        is_paused = self._process.state is ProcessState.PAUSED
        if is_paused or self._is_standing:
            connection.hold()
            self._waiting.append(connection)
            self._process.deliver(self._serve_waiting)
            return
        delay_ms = 0 if self._quotas is None else self._quotas.accept()
        if not delay_ms:
            self._take(connection)
            return
        connection.hold()
        self._next = connection
        self._process.call_later(delay_ms, self._take_next)

    @property
    def _is_standing(self) -> bool:
        """Whether the listener accepts nobody now."""
        return self._next is not None or len(self._idle_since_ms) >= self._max_connections

    def _take_next(self) -> None:
        connection, self._next = self._next, None
        if connection is not None:
            self._take(connection)
            self._let_pass(connection)
        self._serve_waiting()

    def _take(self, connection: Connection) -> None:
        """Look after a new connection, or end it."""
        delay_ms = 0 if self._quotas is None else self._quotas.accept_from(connection.ip)
        if delay_ms:
            connection.hold()
            self._refused.add(connection)
            self._process.call_later(delay_ms, self._close_refused, connection)
        elif self._connections_by_ip[connection.ip] >= self._max_connections_per_ip:
            limit = (
                f"{connection.ip} has {self._max_connections_per_ip} connections, the most allowed"
            )
            self._log.warning("connection_rejected", peer=connection.peer, reason=limit)
            connection.abort()
        else:
            self._idle_since_ms[connection] = self._process.clock.now_ms()
            self._connections_by_ip[connection.ip] += 1
            if connection.listener in self._held:
                connection.hold()

    def discard(self, connection: Connection) -> None:
        """Forget a connection that has ended, and serve one that waits in its place."""
        self._refused.discard(connection)
        if connection is self._next:
            self._next = None
            self._process.deliver(self._serve_waiting)
        elif connection in self._waiting:
            self._waiting.remove(connection)
        elif self._idle_since_ms.pop(connection, None) is not None:
            self._connections_by_ip[connection.ip] -= 1
            if not self._connections_by_ip[connection.ip]:
                del self._connections_by_ip[connection.ip]
            self._process.deliver(self._serve_waiting)

    def _serve_waiting(self) -> None:
        while self._waiting and not self._is_standing:
            connection = self._waiting.popleft()
            self.add(connection)
            self._let_pass(connection)

    def _let_pass(self, connection: Connection) -> None:
        if connection in self._idle_since_ms and connection.listener not in self._held:
            connection.release()

    def _close_refused(self, connection: Connection) -> None:
        if connection in self._refused:
            self._refused.remove(connection)
            connection.abort()

    def hold(self, listener: str) -> None:
        """Let nothing pass on connections of the listener, also on those made from now on, until `release`."""
        self._held.add(listener)
        for connection in self._idle_since_ms:
            if connection.listener == listener:
                connection.hold()

    def release(self, listener: str) -> None:
        """Let pass what has waited, and everything after it."""
        self._held.discard(listener)
        for connection in list(self._idle_since_ms):
            if connection.listener == listener:
                connection.release()

    def end_those_of(self, principal: KafkaPrincipal) -> None:
        """Break off the connections of who has logged in as this principal."""
        for connection in list(self._idle_since_ms):
            if connection.principal == principal:
                connection.abort()

    def _sweep(self) -> None:
        now_ms = self._process.clock.now_ms()
        for connection, idle_since_ms in list(self._idle_since_ms.items()):
            if connection.is_active:
                connection.is_active = False
                self._idle_since_ms[connection] = now_ms
            elif now_ms - idle_since_ms >= self._max_idle_ms:
                self._log.debug(
                    "connection_idle", peer=connection.peer, max_idle_ms=self._max_idle_ms
                )
                connection.abort()

    def abort(self) -> None:
        """Break all connections off and stop looking for idle ones."""
        if self._sweep_task is not None:
            self._sweep_task.cancel()
        waiting, self._waiting = self._waiting, deque()
        refused, self._refused = self._refused, set()
        following = () if self._next is None else (self._next,)
        for connection in (*following, *waiting, *refused, *self._idle_since_ms):
            connection.abort()

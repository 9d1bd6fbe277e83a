"""Connections of one listener that its broker has not accepted yet; mirrors the wait in `Acceptor.accept`.

The first connection counts towards the rate, and waits until the rate is below the limit and there is a slot; the
others wait behind it. As in Kafka, a client that disconnects while it is first keeps its place. A paused broker
accepts no connection.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.network.connection import Connection
    from broker_sim.quota import ConnectionQuotas
    from broker_sim.runtime.process import Process


class AcceptQueue:
    """A queue of connections that do no I/O while they wait. Thread rule: only the scheduler's thread."""

    __slots__ = ("_is_counted", "_is_throttled", "_listener", "_process", "_quotas", "_take", "_waiting")

    def __init__(
        self, process: Process, listener: str, quotas: ConnectionQuotas, take: Callable[[Connection], None]
    ) -> None:
        """`take(connection)` is called with each connection when it is accepted."""
        self._process = process
        self._listener = listener
        self._quotas = quotas
        self._take = take
        self._waiting: deque[Connection | None] = deque()
        """The first is None if its client has disconnected."""
        self._is_counted = False
        """Whether the first connection, or the next one if none waits, has been counted."""
        self._is_throttled = False
        """Whether the rate is still above the limit."""

    def add(self, connection: Connection) -> None:
        """Queue the connection, or accept it at once if possible."""
        if not self._waiting and self._is_next_due():
            self._take(connection)
            return
        connection.hold()
        self._waiting.append(connection)
        if self._process.state is ProcessState.PAUSED:
            self._process.deliver(self.serve)

    def serve(self) -> None:
        """Accept the connections that may be accepted now."""
        while self._waiting and self._is_next_due():
            connection = self._waiting.popleft()
            if connection is not None:
                self._take(connection)

    def _is_next_due(self) -> bool:
        if self._process.state is ProcessState.PAUSED:
            return False
        if not self._is_counted:
            self._is_counted = True
            delay_ms = self._quotas.accept(self._listener)
            if delay_ms:
                self._is_throttled = True
                self._process.call_later(delay_ms, self._end_throttling)
        if self._is_throttled or not self._quotas.has_slot(self._listener):
            return False
        self._is_counted = False
        return True

    def _end_throttling(self) -> None:
        self._is_throttled = False
        self.serve()

    def discard(self, connection: Connection) -> bool:
        """Remove a closed connection; return whether it was in the queue."""
        if connection not in self._waiting:
            return False
        if self._waiting[0] is connection and self._is_counted:
            self._waiting[0] = None
        else:
            self._waiting.remove(connection)
        return True

    def abort(self) -> None:
        """Abort all connections in the queue."""
        while self._waiting:
            connection = self._waiting.popleft()
            if connection is not None:
                connection.abort()

"""Connections of one listener that its broker has not taken yet; mirrors the wait in `Acceptor.accept`.

The first one is counted, and waits until its rate has come down and there is a slot. Those behind it are not
looked at meanwhile. As in Kafka a client that gives up while it is the first keeps its place. A paused broker
takes nobody.
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
    """Nothing passes on connections in it. Thread rule: only the scheduler's thread."""

    __slots__ = ("_is_counted", "_is_throttled", "_listener", "_process", "_quotas", "_take", "_waiting")

    def __init__(
        self, process: Process, listener: str, quotas: ConnectionQuotas, take: Callable[[Connection], None]
    ) -> None:
        """`take(connection)` gets each when it is its turn."""
        self._process = process
        self._listener = listener
        self._quotas = quotas
        self._take = take
        self._waiting: deque[Connection | None] = deque()
        """The first is None if its client has given up."""
        self._is_counted = False
        """Whether the first one has been counted, or the next one if none waits."""
        self._is_throttled = False
        """Whether its rate is still above the limit."""

    def add(self, connection: Connection) -> None:
        """Let the connection be taken, now or when it is its turn."""
        if not self._waiting and self._is_next_due():
            self._take(connection)
            return
        connection.hold()
        self._waiting.append(connection)
        if self._process.state is ProcessState.PAUSED:
            self._process.deliver(self.serve)

    def serve(self) -> None:
        """Let those be taken whose turn it is."""
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
        """Forget a connection that has ended; return whether it was here."""
        if connection not in self._waiting:
            return False
        if self._waiting[0] is connection and self._is_counted:
            self._waiting[0] = None
        else:
            self._waiting.remove(connection)
        return True

    def abort(self) -> None:
        """Break all off."""
        while self._waiting:
            connection = self._waiting.popleft()
            if connection is not None:
                connection.abort()

"""TLS handshakes of one listener, a few at a time, so that requests of other clients are served in between.

A handshake takes much more of the loop's time than any request, most of it for the client's first message. It
starts when that message has arrived and it is the connection's turn: at most one starts in each turn of the loop.
A client that sends nothing costs a socket only.

Deliberate difference: Kafka closes a silent connection after `connections.max.idle.ms`, this broker after
`SILENT_S`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker_sim.runtime.read_turns import ReadTurns
    from broker_sim.runtime.system import StandardSocket

HANDSHAKES_AT_ONCE: Final = 4
HANDSHAKE_WAIT_S: Final = 0.005
"""Time after which one more handshake starts although `HANDSHAKES_AT_ONCE` are under way: they may hang."""
SILENT_S: Final = 60.0
"""Time after which a silent client is disconnected; asyncio's limit for a handshake is the same."""


class Handshakes:
    """Thread rule: only the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        turns: ReadTurns | None,
        serve: Callable[[StandardSocket], asyncio.Task[None]],
    ) -> None:
        """Serve connections; the task that `serve` returns ends with the handshake.

        Without `turns` it starts at once.
        """
        self._loop = loop
        self._turns = turns
        self._serve = serve
        self._silent: dict[_Silent, asyncio.TimerHandle] = {}
        self._waiting: deque[StandardSocket] = deque()
        self._under_way = 0
        self._has_begun = False
        """Whether a handshake has started in this turn of the loop."""
        self._next: asyncio.TimerHandle | None = None
        self._is_held = False

    def add(self, connection: StandardSocket) -> None:
        """Take over an accepted connection."""
        if self._turns is None:
            self._wait(connection)
            return
        silent = _Silent(connection, self)
        self._silent[silent] = self._loop.call_later(SILENT_S, self._give_up, silent)
        if not self._is_held:
            self._turns.wait(connection.fileno(), silent)

    def on_first_message(self, silent: _Silent) -> None:
        """Queue a connection for its handshake: its first message has arrived."""
        self._silent.pop(silent).cancel()
        self._wait(silent.connection)

    def _give_up(self, silent: _Silent) -> None:
        del self._silent[silent]
        if self._turns is not None:
            self._turns.leave(silent.connection.fileno(), silent)
        silent.connection.close()

    def _wait(self, connection: StandardSocket) -> None:
        self._waiting.append(connection)
        self._begin()

    def _begin(self) -> None:
        """Start a handshake if there is room for one, and one more in each of the next turns."""
        if self._waiting and not self._has_begun and self._under_way < HANDSHAKES_AT_ONCE:
            self._begin_one()
        if self._waiting and self._next is None:
            self._next = self._loop.call_later(HANDSHAKE_WAIT_S, self._begin_anyway)

    def _begin_one(self) -> None:
        self._under_way += 1
        self._has_begun = True
        self._loop.call_soon(self._next_turn)
        self._serve(self._waiting.popleft()).add_done_callback(self._served)

    def _next_turn(self) -> None:
        self._has_begun = False
        self._begin()

    def _begin_anyway(self) -> None:
        """Start one more handshake, however many are under way."""
        self._next = None
        if self._waiting:
            self._begin_one()
        self._begin()

    def _served(self, _: asyncio.Task[None]) -> None:
        self._under_way -= 1
        self._begin()

    def hold(self) -> None:
        """Start no handshake of a connection that is still silent."""
        self._is_held = True
        if self._turns is not None:
            for silent in self._silent:
                self._turns.leave(silent.connection.fileno(), silent)

    def release(self) -> None:
        """Undo `hold`."""
        self._is_held = False
        if self._turns is not None:
            for silent in self._silent:
                self._turns.wait(silent.connection.fileno(), silent)

    def close(self) -> None:
        """Close all connections whose handshakes have not started."""
        if self._next is not None:
            self._next.cancel()
        for silent in list(self._silent):
            self._silent[silent].cancel()
            self._give_up(silent)
        while self._waiting:
            self._waiting.popleft().close()


class _Silent:
    """A connection that has sent nothing yet."""

    __slots__ = ("_handshakes", "connection")

    def __init__(self, connection: StandardSocket, handshakes: Handshakes) -> None:
        self.connection = connection
        self._handshakes = handshakes

    def turn_came(self) -> None:
        self._handshakes.on_first_message(self)

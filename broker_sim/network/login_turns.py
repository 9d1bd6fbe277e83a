"""Limits the login work in one turn of a broker's loop, so that clients that have logged in do not wait for it.

A thousand clients that log in, or are refused, at the same time make a thousand small pieces of work. Those above
`PIECES_AT_ONCE` wait for the next turns, in order, and other clients' requests are handled in between. Kafka has
threads for that: a processor serves only its own connections.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.runtime.process import Process

PIECES_AT_ONCE: Final = 1
"""Number of pieces of work per turn; each takes up to 0.1 ms."""


class LoginTurns:
    """Runs a limited number of pieces of work in each turn of the loop. Thread rule: only the process's scheduler."""

    __slots__ = ("_is_counting", "_left", "_process", "_waiting")

    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._left = PIECES_AT_ONCE
        self._is_counting = False
        """Whether the next turn has been scheduled."""

    def run(self, piece: Callable[..., object], *args: Any) -> None:
        """Run `piece(*args)` now if this turn has room for it, otherwise in a later turn."""
        if not self._left or self._waiting:
            self._waiting.append((piece, args))
            return
        self._left -= 1
        self._ask_for_turn()
        piece(*args)

    def _ask_for_turn(self) -> None:
        if not self._is_counting:
            self._is_counting = True
            self._process.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_counting = False
        self._left = PIECES_AT_ONCE
        while self._waiting and self._left:
            self._left -= 1
            self._ask_for_turn()
            piece, args = self._waiting.popleft()
            piece(*args)

"""Limits how many clients that have not logged in a broker reads from in one turn of its loop.

A loop reads from every readable socket before it does anything else. If a thousand clients send a login step at
the same time, a client that has logged in would wait for a thousand reads. So the sockets of clients that have
not logged in are not in the loop, but in an epoll of their own. In each turn of the loop one readable socket is
read once, in the order in which the bytes came. Kafka has threads for that: a processor serves its own
connections only.

Only Linux has epoll. On other systems, and in virtual time, these sockets are in the loop like all others.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final, Protocol

from broker_sim.runtime.system import StandardSocket, epoll

if TYPE_CHECKING:
    import asyncio

READS_AT_ONCE: Final = 1
"""Reads in one turn of the loop. A login step takes up to 0.1 ms, the first step of a TLS handshake 0.5 ms."""


class Reader(Protocol):
    """Something that wants to read from a socket."""

    def turn_came(self) -> None:
        """Read once: the socket has bytes or has ended. To read more, wait again."""


class ReadTurns:
    """Gives readers their turns, `READS_AT_ONCE` in a turn of the loop. Thread rule: only the loop's thread."""

    __slots__ = ("_epoll", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open the epoll. Raises OSError if no file can be opened."""
        self._loop = loop
        self._epoll = epoll()
        self._waiting: dict[int, Reader] = {}
        loop.add_reader(self._epoll.fileno(), self._next_turn)

    def wait(self, descriptor: int, reader: Reader) -> None:
        """Call the reader when the socket is readable and its turn has come."""
        if descriptor not in self._waiting and not self._epoll.closed:
            self._epoll.register(descriptor, select.EPOLLIN)
            self._waiting[descriptor] = reader

    def leave(self, descriptor: int, reader: Reader) -> None:
        """End the reader's wait, if there is one; to be called before its socket is closed."""
        if self._waiting.get(descriptor) is reader:
            del self._waiting[descriptor]
            self._epoll.unregister(descriptor)

    def _next_turn(self) -> None:
        for descriptor, _ in self._epoll.poll(0, READS_AT_ONCE):
            # The previous reader may have ended this one's wait, or all waits.
            reader = self._waiting.get(descriptor)
            if reader is not None:
                self.leave(descriptor, reader)
                reader.turn_came()

    def close(self) -> None:
        """End all waits."""
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._waiting.clear()


def read_turns(loop: asyncio.AbstractEventLoop, listening: object) -> ReadTurns | None:
    """Return turns for connections of the listening socket; None where the loop reads their sockets itself."""
    if epoll is None or not isinstance(listening, StandardSocket):
        return None
    return ReadTurns(loop)

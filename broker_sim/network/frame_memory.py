"""Memory of the cluster that the requests of one connection use, from their first bytes to their response.

Mirrors the memory pool of `queued.max.request.bytes`. Deliberate differences: it is always on, and while
Kafka stops reading when the pool is exhausted, here the connection that would exceed the limit is closed,
because its request might never be complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker_sim.log import MemoryAccount

COUNTED_BYTES: Final = 64 * 1024
"""Minimum number of bytes that is counted, so that small requests cost nothing."""


class FrameMemory:
    """Counts the memory of one connection."""

    __slots__ = ("_account", "_counted_bytes")

    def __init__(self, account: MemoryAccount) -> None:
        self._account = account
        self._counted_bytes = 0

    @property
    def is_counting(self) -> bool:
        """Whether any bytes are counted."""
        return self._counted_bytes > 0

    def count(self, held_bytes: int) -> bool:
        """Set the number of counted bytes; return whether they fit within the limit."""
        counted_bytes = held_bytes if held_bytes >= COUNTED_BYTES else 0
        if not self._account.grow_requests(counted_bytes - self._counted_bytes):
            return False
        self._counted_bytes = counted_bytes
        return True

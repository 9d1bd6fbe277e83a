"""Memory of the cluster that the requests of one connection take, from their first bytes to their answer.

Mirrors the memory pool of `queued.max.request.bytes`. Deliberate differences: it is always there, and where
Kafka stops reading while the pool is used up, the connection that would go over the limit is closed. Kafka
waits for requests to be answered; here they may never be complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker_sim.log import MemoryAccount

COUNTED_BYTES: Final = 64 * 1024
"""Less than this is not counted, so that small requests cost nothing."""


class FrameMemory:
    """Counts for one connection; `is_counting` is whether it has counted anything."""

    __slots__ = ("_account", "_counted_bytes")

    def __init__(self, account: MemoryAccount) -> None:
        self._account = account
        self._counted_bytes = 0

    @property
    def is_counting(self) -> bool:
        """Whether any bytes are counted."""
        return self._counted_bytes > 0

    def count(self, held_bytes: int) -> bool:
        """Count so many bytes from now on; returns whether there is room for them."""
        counted_bytes = held_bytes if held_bytes >= COUNTED_BYTES else 0
        if not self._account.grow_requests(counted_bytes - self._counted_bytes):
            return False
        self._counted_bytes = counted_bytes
        return True

"""Tells who waits for a cluster that something in it may have changed; Kafka has no counterpart."""

from __future__ import annotations

import asyncio

__all__ = ["Changes"]


class Changes:
    """Counts what may have changed something. Thread rule: the cluster's event loop."""

    def __init__(self) -> None:
        self.count = 0
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake all that wait; they look once in each turn of the loop, however often this is called."""
        self.count += 1
        self._event.set()

    async def after(self, count: int) -> int:
        """Wait until there are more than `count`; returns how many there are."""
        while self.count <= count:
            self._event.clear()
            await self._event.wait()
        return self.count

"""Tells who waits for a cluster that something in it may have changed; Kafka has no counterpart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def name_of(predicate: Callable[[], object]) -> str:
    """Return what a predicate is called and where it is written, for the text of an error."""
    code = getattr(predicate, "__code__", None)
    if code is None:
        return repr(predicate)
    place = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
    return f"{code.co_qualname} ({place})"


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

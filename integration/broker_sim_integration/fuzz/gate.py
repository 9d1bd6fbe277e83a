"""Faults that several plays share: a verb is called once, when all plays have reached it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Gate:
    """Replaces a side's verb; every play of a wave calls it, and leaves at its end."""

    def __init__(self, players: int, verb: Callable[[str, int], Awaitable[object]]) -> None:
        self._players = players
        self._verb = verb
        self._waiting: list[asyncio.Future[None]] = []
        self._asked: tuple[str, int] | None = None
        self._doing: asyncio.Task[None] | None = None

    async def verb(self, name: str, broker: int) -> None:
        """Wait for the other plays, which call the same verb; returns when it is done."""
        self._asked = name, broker
        completion: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(completion)
        self._begin()
        await completion

    def leave(self) -> None:
        """Stop waiting for a finished play."""
        self._players -= 1
        self._begin()

    def _begin(self) -> None:
        if self._waiting and len(self._waiting) >= self._players and self._asked is not None:
            waiting, self._waiting = self._waiting, []
            self._doing = asyncio.get_running_loop().create_task(self._do(self._asked, waiting))

    async def _do(self, verb: tuple[str, int], waiting: list[asyncio.Future[None]]) -> None:
        try:
            await self._verb(*verb)
        except Exception as error:  # noqa: BLE001 - every play gets the error
            for one in waiting:
                one.set_exception(error)
        else:
            for one in waiting:
                one.set_result(None)

"""The memory of all logs of a cluster: how much they may take, and what is done when some is freed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.log import MemoryAccount
from broker_sim.runtime.memory import default_memory_limit, return_freed_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.runtime.process import Handle
    from broker_sim.runtime.scheduler import Scheduler

MEMORY_RETURN_MS: Final = 1_000
"""Freed memory is given back at most so often."""


class LogMemory:
    """The account that the logs are charged to, and the machine that gets back what they free."""

    def __init__(self, scheduler: Scheduler, limit_bytes: int | None, reclaim: Callable[[], object]) -> None:
        """Half of the machine's memory is the limit unless given; `reclaim()` frees what may go."""
        self._scheduler = scheduler
        self._handle: Handle | None = None
        self.account = MemoryAccount(
            limit_bytes or default_memory_limit(), scheduler.clock, reclaim=reclaim, on_freed=self._return_soon
        )

    def _return_soon(self) -> None:
        """Give freed memory back to the machine, when what uses it still has let go of it."""
        if self._handle is None:
            self._handle = self._scheduler.call_later(MEMORY_RETURN_MS, self._return)

    def _return(self) -> None:
        self._handle = None
        return_freed_memory()

    def close(self) -> None:
        """Give nothing back any more."""
        if self._handle is not None:
            self._handle.cancel()

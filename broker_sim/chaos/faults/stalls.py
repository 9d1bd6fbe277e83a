"""A disk that lets its broker wait again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.runtime.process import ProcessState

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.runtime.process import Process
    from broker_sim.runtime.scheduler import Scheduler

RUNS_MS: Final = 50
"""Time that the broker runs between two waits."""


def stalls(process: Process, scheduler: Scheduler, stall_ms: int) -> Callable[[], object]:
    """Block a process from now on for `stall_ms`, let it run for a moment, and so on; return what ends it."""
    is_over = False

    def block() -> None:
        if not is_over and process.state is not ProcessState.DEAD:
            process.block()
            scheduler.call_later(stall_ms, unblock)

    def unblock() -> None:
        if not is_over and process.state is not ProcessState.DEAD:
            process.unblock()
            scheduler.call_later(RUNS_MS, block)

    def end() -> None:
        nonlocal is_over
        is_over = True
        if process.state is not ProcessState.DEAD:
            process.unblock()

    block()
    return end

"""Runs of many seeds on several processes; Kafka has no counterpart."""

from __future__ import annotations

import multiprocessing
import signal
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

WORK_AT_ONCE: Final = 4
"""Number of tasks handed to a process at once."""

Work = TypeVar("Work")
Result = TypeVar("Result")


def run_on_processes(run: Callable[[Work], Result], work: Iterable[Work], processes: int) -> Iterator[Result]:
    """Yield the results of `run`, which is a function of a module, as they come; with several processes in any order.

    With one process they are made in this one, in order.
    """
    if processes == 1:
        yield from map(run, work)
        return
    # A process of its own from the start: a copy of this one might hold another thread's lock.
    with multiprocessing.get_context("spawn").Pool(processes, _start_process) as pool:
        yield from pool.imap_unordered(run, work, chunksize=WORK_AT_ONCE)


def _start_process() -> None:
    # The process that started this one decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

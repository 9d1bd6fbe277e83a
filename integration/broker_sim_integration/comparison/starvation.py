"""The time for which the simulator waited for a processor.

Linux counts for each thread how long it was runnable without running. A thread of the comparing process
reads that figure of the simulator's main thread continuously. A response that is late because other
programs occupied the processors is not the simulator's fault. On other systems nothing is excused.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from broker_sim_integration.clients.stopwatch import now_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_integration.comparison.intervals import Interval

    Waited = Callable[[], float]
    """Returns for how many ms a thread has waited for a processor so far."""

PERIOD_MS: Final = 2.0
LEAST_MS: Final = 0.2
"""Minimum wait in ms: a switch between two threads takes less."""
_NS_PER_MS: Final = 1_000_000


def waited_for_processor_ms(pid: int) -> Waited:
    """Return a function that reads the waiting time in ms of a process's main thread; 0 if unknown."""
    figures = Path(f"/proc/{pid}/schedstat")

    def read() -> float:
        try:
            return int(figures.read_bytes().split()[1]) / _NS_PER_MS
        except (OSError, IndexError, ValueError):
            return 0.0

    return read


class Starvation:
    """Reads `waited` every 2 ms while it is open; a context manager."""

    def __init__(self, waited: Waited) -> None:
        self._waited = waited
        self.intervals: list[Interval] = []
        """Intervals of waiting; complete after the end."""
        self._before_ms = waited()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="starvation", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self.look()

    def look(self) -> None:
        """Record the waiting time since the last look; that wait has just ended."""
        waited_ms, at_ms = self._waited(), now_ms()
        added_ms = waited_ms - self._before_ms
        if added_ms >= LEAST_MS:
            self.intervals.append((at_ms - added_ms, at_ms))
        self._before_ms = waited_ms

    def _run(self) -> None:
        while not self._ending.wait(PERIOD_MS / 1000):
            self.look()

"""The time for which the threads that read responses waited for a processor.

The time of a response is taken by the thread of its connection. If other programs occupy the processors, that
thread runs some milliseconds after the response has arrived, while the control timer, another thread, may be in
time: beside ten busy programs on two cores, responses that the kernel had received 0.2 ms after their cause were
recorded up to 9 ms late. Linux counts for each thread how long it was runnable without running; on other systems
nothing is excused.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.comparison.machine import ControlTimer

if TYPE_CHECKING:
    from broker_sim_integration.comparison.intervals import Interval

READERS: Final = "raw-"
"""Prefix of the names of the threads that read responses, see `RawConnection`."""
THREADS: Final = "/proc/self/task"
"""Directory in which Linux has a directory per thread, by native id."""
LEAST_MS: Final = 0.2
"""Minimum wait in ms: a switch between two threads takes less."""
KEPT_MS: Final = 300_000.0
"""Age in ms up to which waits are stored: no scenario takes longer, and responses are judged at its end."""
_NS_PER_MS: Final = 1_000_000
_FIGURES_BYTES: Final = 128


class ReaderWaits:
    """Reads the kernel's figures of all readers; one thread calls `look`, any may read `intervals`."""

    def __init__(self, directory: str = THREADS) -> None:
        self._directory = directory
        self.intervals: list[Interval] = []
        """Intervals in which a reader waited; the first may begin too early by up to the time between two looks."""
        self._figures: dict[int, int] = {}
        """File descriptor of each reader's figures, by its native id."""
        self._before_ms: dict[int, float] = {}
        self._looked_ms = now_ms()

    def look(self) -> None:
        """Record the waits that have ended since the last look: the kernel counts a wait at its end."""
        before_ms, self._looked_ms = self._looked_ms, now_ms()
        threads = threading.enumerate()
        readers = {one.native_id for one in threads if one.native_id is not None and one.name.startswith(READERS)}
        longest_ms = max(map(self._added_ms, readers | self._figures.keys()), default=0.0)
        if longest_ms < LEAST_MS:
            return
        kept = [one for one in self.intervals if one[1] > before_ms - KEPT_MS]
        self.intervals = [*kept, (before_ms - longest_ms, self._looked_ms)]

    def close(self) -> None:
        """Close the files of all readers."""
        for reader in list(self._figures):
            self._forget(reader)

    def _added_ms(self, reader: int) -> float:
        try:
            if reader not in self._figures:
                self._figures[reader] = os.open(f"{self._directory}/{reader}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            waited_ms = int(os.pread(self._figures[reader], _FIGURES_BYTES, 0).split()[1]) / _NS_PER_MS
        except (OSError, IndexError, ValueError):  # the thread has ended, or this is not Linux
            self._forget(reader)
            return 0.0
        before_ms = self._before_ms.get(reader, waited_ms)
        self._before_ms[reader] = waited_ms
        return waited_ms - before_ms

    def _forget(self, reader: int) -> None:
        self._before_ms.pop(reader, None)
        if reader in self._figures:
            with suppress(OSError):
                os.close(self._figures.pop(reader))


class ReaderControl(ControlTimer):
    """A control timer that looks at the readers whenever it wakes, and counts their waits as stalls."""

    def __init__(self) -> None:
        super().__init__()
        self._waits = ReaderWaits()

    def woke(self, at_ms: float) -> None:
        """Record that its wait has ended, and the waits of readers."""
        super().woke(at_ms)
        self._waits.look()

    def end(self) -> None:
        """Record that the timer has stopped waiting."""
        super().end()
        self._waits.close()

    def stalls(self, until_ms: float) -> list[Interval]:
        """Return the intervals in which the timer was stalled or a reader waited, up to a time in the past."""
        return super().stalls(until_ms) + self._waits.intervals

"""For how long the machine let the threads that read answers wait for a processor.

The moment of an answer is taken by the thread of its connection. Where other programs have the processors, that
thread runs some milliseconds after the answer has arrived, while the control timer, which is another thread, may be
in time: beside ten busy programs on two cores, answers that the kernel had received 0.2 ms after their cause were
called up to 9 ms late. Linux counts for every thread how long it could have run and did not; elsewhere nothing is
excused.
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
"""How the names of the threads begin that read answers, see `RawConnection`."""
THREADS: Final = "/proc/self/task"
"""Where Linux has a directory of each thread, by its native id."""
LEAST_MS: Final = 0.2
"""Less is what every switch between two threads takes."""
KEPT_MS: Final = 300_000.0
"""No scenario takes longer; its answers are judged when it has ended."""
_NS_PER_MS: Final = 1_000_000
_FIGURES_BYTES: Final = 128


class ReaderWaits:
    """Looks at the kernel's figures of all readers; one thread looks, any may read `intervals`."""

    def __init__(self, directory: str = THREADS) -> None:
        self._directory = directory
        self.intervals: list[Interval] = []
        """Intervals in which a reader waited; the first may begin up to the time between two looks too early."""
        self._figures: dict[int, int] = {}
        """File descriptor of each reader's figures, by its native id."""
        self._before_ms: dict[int, float] = {}
        self._looked_ms = now_ms()

    def look(self) -> None:
        """Note the waits that have ended since the last look: the kernel counts a wait at its end."""
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
    """A control timer that looks at the readers whenever it wakes: their waits are stalls too."""

    def __init__(self) -> None:
        super().__init__()
        self._waits = ReaderWaits()

    def woke(self, at_ms: float) -> None:
        """Note that its wait has ended, and the waits of readers."""
        super().woke(at_ms)
        self._waits.look()

    def end(self) -> None:
        """Note that the timer waits no longer."""
        super().end()
        self._waits.close()

    def stalls(self, until_ms: float) -> list[Interval]:
        """Return the intervals in which the timer was stalled or a reader waited, up to a moment in the past."""
        return super().stalls(until_ms) + self._waits.intervals

"""The time that the machine adds to each measurement: a control timer in the comparing process.

A thread sleeps for `PERIOD_MS` repeatedly and records how late it wakes. If that is `STALL_MS` or more,
the process was stalled: in that interval it could not see any response arrive, however promptly it was
sent, and that part of a response's lateness is excused.

Only the time after a response was due is excused. So the process should stall as little as possible, see
`collections_of_new_objects_only`.
"""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.comparison.distribution import Distribution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.comparison.intervals import Interval

PERIOD_MS: Final = 5.0
STALL_MS: Final = 3.0


class Stalls:
    """Lateness of the waits of a control timer; any thread may call its methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._woken: list[tuple[float, float]] = []
        self._stalls: list[Interval] = []
        self._due_ms: float | None = None

    def wait_until(self, due_ms: float) -> None:
        """Record that the timer begins to wait until `due_ms`."""
        with self._lock:
            self._due_ms = due_ms

    def woke(self, at_ms: float) -> None:
        """Record that its wait has ended."""
        with self._lock:
            assert self._due_ms is not None
            self._woken.append((at_ms, at_ms - self._due_ms))
            if at_ms - self._due_ms >= STALL_MS:
                self._stalls.append((self._due_ms, at_ms))
            self._due_ms = None

    def end(self) -> None:
        """Record that the timer has stopped waiting."""
        with self._lock:
            self._due_ms = None

    def stalls(self, until_ms: float) -> list[Interval]:
        """Return the intervals in which the timer was stalled, up to a time in the past."""
        with self._lock:
            stalls = list(self._stalls)
            if self._due_ms is not None and until_ms - self._due_ms >= STALL_MS:
                stalls.append((self._due_ms, until_ms))  # the timer has not woken yet
        return stalls

    def lateness(self, since_ms: float = 0.0) -> Distribution | None:
        """Return the lateness of the waits that ended since `since_ms`, or None if there was none."""
        with self._lock:
            samples = [late_ms for at_ms, late_ms in self._woken if at_ms >= since_ms]
        return Distribution.of(samples) if samples else None


class ControlTimer(Stalls):
    """A thread that waits for `PERIOD_MS` repeatedly; a context manager."""

    def __init__(self) -> None:
        super().__init__()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="control-timer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self.end()

    def _run(self) -> None:
        while True:
            self.wait_until(now_ms() + PERIOD_MS)
            if self._ending.wait(PERIOD_MS / 1000):
                return
            self.woke(now_ms())


@contextmanager
def collections_of_new_objects_only() -> Iterator[None]:
    """Exclude all present objects from garbage collections.

    A full collection stops all threads of the process while it visits all objects: 250 ms with the 320 000
    of a pytest process. Objects that were frozen before, by another such block or by other code, stay
    frozen at the end.
    """
    was_frozen = gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()

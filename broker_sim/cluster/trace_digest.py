"""The trace of a simulated run: every event in order, and a digest that tells two runs apart."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from purgatory import Clock, DelayedOperation, PurgatoryObserver

__all__ = ["BothObservers", "OperationWatch", "SimulationTrace"]

KEPT_EVENTS = 200


class SimulationTrace:
    """Digests all events and keeps the last ones as text, for the report of a failure."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hash = hashlib.sha256()
        self._recent: list[str] = []
        self.event_count = 0

    def record(self, *parts: object) -> None:
        """Add one event at the present time."""
        line = f"{self._clock.now_ms()} {' '.join(map(str, parts))}"
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        self.event_count += 1
        self._recent.append(line)
        if len(self._recent) > 2 * KEPT_EVENTS:
            del self._recent[:KEPT_EVENTS]

    @property
    def recent(self) -> Sequence[str]:
        """The last events, oldest first."""
        return self._recent[-KEPT_EVENTS:]

    def digest(self) -> str:
        """Return a digest of everything so far; equal runs have equal digests."""
        return self._hash.hexdigest()


class OperationWatch:
    """A `PurgatoryObserver` that records each step and counts how operations end."""

    def __init__(
        self,
        purgatory: str,
        broker_id: int,
        trace: SimulationTrace,
        on_end: Callable[[str, int], None],
    ) -> None:
        self._label = f"{broker_id}/{purgatory}"
        self._trace = trace
        self._on_end = on_end
        self.open: set[int] = set()

    def tried(self, operation: DelayedOperation, keys: Sequence[object], /) -> None:
        """Take note that an operation is tried for the first time."""
        self.open.add(operation.operation_id)
        self._trace.record(self._label, operation.operation_id, "tried", *keys)

    def parked(self, operation: DelayedOperation, keys: Sequence[object], /) -> None:
        """Take note that it has to wait."""
        self._trace.record(self._label, operation.operation_id, "parked", len(keys))

    def completed(self, operation: DelayedOperation, by: str, /) -> None:
        """Take note that it was completed."""
        self._end(operation, "completed", by)

    def expired(self, operation: DelayedOperation, lateness_ms: int, /) -> None:
        """Take note that its time was over."""
        self._end(operation, "expired", str(lateness_ms))

    def cancelled(self, operation: DelayedOperation, /) -> None:
        """Take note that it was dropped."""
        self._end(operation, "cancelled", "")

    def _end(self, operation: DelayedOperation, how: str, detail: str) -> None:
        self._trace.record(self._label, operation.operation_id, how, detail)
        if operation.operation_id not in self.open:
            self._on_end(self._label, operation.operation_id)
        self.open.discard(operation.operation_id)


class BothObservers:
    """A `PurgatoryObserver` that is two, told one after the other."""

    def __init__(self, first: PurgatoryObserver, second: PurgatoryObserver) -> None:
        self._both = (first, second)

    def tried(self, operation: DelayedOperation, keys: Sequence[object], /) -> None:
        """Pass it on."""
        for observer in self._both:
            observer.tried(operation, keys)

    def parked(self, operation: DelayedOperation, keys: Sequence[object], /) -> None:
        """Pass it on."""
        for observer in self._both:
            observer.parked(operation, keys)

    def completed(self, operation: DelayedOperation, by: str, /) -> None:
        """Pass it on."""
        for observer in self._both:
            observer.completed(operation, by)

    def expired(self, operation: DelayedOperation, lateness_ms: int, /) -> None:
        """Pass it on."""
        for observer in self._both:
            observer.expired(operation, lateness_ms)

    def cancelled(self, operation: DelayedOperation, /) -> None:
        """Pass it on."""
        for observer in self._both:
            observer.cancelled(operation)

"""The trace of a simulated run: every event in order, and a digest that tells two runs apart."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from broker_sim.cluster.invariants import InvariantViolationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from purgatory import Clock, DelayedOperation, DelayedOperationPurgatory

__all__ = ["OperationWatch", "OperationWatches", "SimulationTrace"]

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


class OperationWatches:
    """Makes the observers that write the steps of all operations into one trace."""

    def __init__(self, trace: SimulationTrace) -> None:
        self._trace = trace

    def observer(self, purgatory: str, broker_id: int, clock: Clock) -> OperationWatch:  # noqa: ARG002 - the trace has one
        """Return the observer of a purgatory."""
        return OperationWatch(f"{broker_id}/{purgatory}", self._trace)


class OperationWatch:
    """Records each step of the operations of one purgatory, and that each of them ends once."""

    def __init__(self, label: str, trace: SimulationTrace) -> None:
        self._label = label
        self._trace = trace
        self._open: set[int] = set()

    def attach(self, purgatory: DelayedOperationPurgatory[Any]) -> None:
        """Do nothing: nothing is asked of the purgatory."""

    def tried(self, operation: DelayedOperation, keys: Sequence[object], /) -> None:
        """Record that an operation is tried for the first time."""
        self._open.add(operation.operation_id)
        self._trace.record(self._label, operation.operation_id, "tried", *keys)

    def parked(self, operation: DelayedOperation, keys: Sequence[object], /) -> None:
        """Record that it has to wait."""
        self._trace.record(self._label, operation.operation_id, "parked", len(keys))

    def completed(self, operation: DelayedOperation, by: str, /) -> None:
        """Record that it was completed."""
        self._end(operation, "completed", by)

    def expired(self, operation: DelayedOperation, lateness_ms: int, /) -> None:
        """Record that its time was over."""
        self._end(operation, "expired", str(lateness_ms))

    def cancelled(self, operation: DelayedOperation, /) -> None:
        """Record that it was dropped."""
        self._end(operation, "cancelled", "")

    def _end(self, operation: DelayedOperation, how: str, detail: str) -> None:
        self._trace.record(self._label, operation.operation_id, how, detail)
        if operation.operation_id not in self._open:
            raise InvariantViolationError(
                f"operation {operation.operation_id} of {self._label} ended twice"
            )
        self._open.discard(operation.operation_id)

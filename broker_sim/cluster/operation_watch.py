"""Observers that write the steps of all operations into the trace of a run in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.cluster.invariants import InvariantViolationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.runtime.virtual import LoopTrace
    from purgatory import Clock, DelayedOperation, DelayedOperationPurgatory

__all__ = ["OperationWatch", "OperationWatches"]


class OperationWatches:
    """Makes the observers that write into one trace."""

    def __init__(self, trace: LoopTrace) -> None:
        self._trace = trace

    def observer(self, purgatory: str, broker_id: int, clock: Clock) -> OperationWatch:  # noqa: ARG002 - the trace has its own clock
        """Return the observer of a purgatory."""
        return OperationWatch(f"{broker_id}/{purgatory}", self._trace)


class OperationWatch:
    """Records each step of the operations of one purgatory, and checks that each ends once."""

    def __init__(self, label: str, trace: LoopTrace) -> None:
        self._label = label
        self._record = trace.record
        self._open: set[int] = set()

    def attach(self, purgatory: DelayedOperationPurgatory[Any]) -> None:
        """Do nothing: no figures of the purgatory are recorded."""

    def tried(self, operation: DelayedOperation, keys: Sequence[object], /) -> None:
        """Record that an operation is tried for the first time."""
        self._open.add(operation.operation_id)
        self._record(self._label, operation.operation_id, "tried", *map(str, keys))

    def parked(self, operation: DelayedOperation, keys: Sequence[object], /) -> None:
        """Record that it has to wait."""
        self._record(self._label, operation.operation_id, "parked", len(keys))

    def completed(self, operation: DelayedOperation, by: str, /) -> None:
        """Record that it was completed before its time."""
        self._end(operation, "completed", by)

    def expired(self, operation: DelayedOperation, lateness_ms: int, /) -> None:
        """Record that its time was over."""
        self._end(operation, "expired", lateness_ms)

    def cancelled(self, operation: DelayedOperation, /) -> None:
        """Record that it was dropped."""
        self._end(operation, "cancelled", "")

    def _end(self, operation: DelayedOperation, how: str, detail: object) -> None:
        self._record(self._label, operation.operation_id, how, detail)
        if operation.operation_id not in self._open:
            raise InvariantViolationError(
                f"operation {operation.operation_id} of {self._label} ended twice"
            )
        self._open.discard(operation.operation_id)

"""Observers that write the steps of all operations into the trace of a run in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim_purgatory import KeySet

from broker_sim.cluster.virtual.invariants import violated

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker_sim_purgatory import Clock, DelayedOperation, DelayedOperationPurgatory

    from broker_sim.runtime.virtual import LoopTrace


class OperationWatches:
    """Makes the observers that write into one trace."""

    def __init__(self, trace: LoopTrace) -> None:
        self._trace = trace
        self._watches: dict[tuple[int, str], OperationWatch] = {}

    def observer(self, purgatory: str, broker_id: int, clock: Clock) -> OperationWatch:
        """Return the observer of a purgatory, for one run of its broker's process."""
        watch = OperationWatch(f"{broker_id}/{purgatory}", self._trace, clock)
        self._watches[broker_id, purgatory] = watch
        return watch

    def oldest_deadline_ms(self, broker_id: int) -> int | None:
        """Return when the first of the broker's parked operations has to end; None without any."""
        deadlines = [
            watch.oldest_deadline_ms
            for (watched_broker, _), watch in self._watches.items()
            if watched_broker == broker_id
        ]
        return min((each for each in deadlines if each is not None), default=None)


class OperationWatch:
    """Records each step of the operations of one purgatory, and checks that each ends once."""

    def __init__(self, label: str, trace: LoopTrace, clock: Clock) -> None:
        self._label = label
        self._record = trace.record
        self._clock = clock
        self._open: set[int] = set()
        self._deadlines_ms: dict[int, int] = {}
        self._told: dict[KeySet[Any], int] = {}
        """Which keys of a set are recorded: its version."""

    @property
    def oldest_deadline_ms(self) -> int | None:
        """When the first of the parked operations has to end; None without any."""
        return min(self._deadlines_ms.values(), default=None)

    def attach(self, purgatory: DelayedOperationPurgatory[Any]) -> None:
        """Do nothing: no figures of the purgatory are recorded."""

    def tried(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        """Record that an operation is tried for the first time."""
        self._open.add(operation.operation_id)
        if isinstance(keys, KeySet):
            if self._told.get(keys) == keys.version:
                self._record(self._label, operation.operation_id, "tried", "same keys", len(keys))
                return
            self._told[keys] = keys.version
        self._record(self._label, operation.operation_id, "tried", *map(str, keys))

    def parked(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        """Record that it has to wait."""
        self._record(self._label, operation.operation_id, "parked", len(keys))
        deadline_ms = self._clock.deadline_ms(operation.delay_ms)
        self._deadlines_ms[operation.operation_id] = deadline_ms

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
            violated("operation-ends-once", f"operation {operation.operation_id} of {self._label} ended twice")
        self._open.discard(operation.operation_id)
        self._deadlines_ms.pop(operation.operation_id, None)

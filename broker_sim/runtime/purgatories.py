"""Creates the purgatories of brokers, with their timers and observers.

As in Kafka each has a SystemTimer and, in real time, a thread `ExpirationReaper-<broker>-<purgatory>`,
which purges; the first purge starts it. Deliberate difference: the timer is a `LoopTimer`, so operations expire on
the event loop and not in that thread, which would first have to wait for the GIL. In virtual time there are no
threads. All of it runs in the broker's process: while that is paused nothing expires and nothing is purged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker_sim_purgatory import DelayedOperationPurgatory, LoopTimer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from broker_sim_purgatory import Clock, DelayedOperation, PurgatoryObserver

    from broker_sim.runtime.process import Process
    from broker_sim.runtime.scheduler import Scheduler


class OperationObserver(Protocol):
    """A `PurgatoryObserver` that also receives its purgatory."""

    def attach(self, purgatory: DelayedOperationPurgatory[Any]) -> None:
        """Receive the observed purgatory; called once, before all other methods."""

    def tried(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        """Observe that an operation is tried for the first time."""

    def parked(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        """Observe that the operation has to wait."""

    def completed(self, operation: DelayedOperation, by: str, /) -> None:
        """Observe that the operation was completed before its timeout."""

    def expired(self, operation: DelayedOperation, lateness_ms: int, /) -> None:
        """Observe that the operation has timed out, `lateness_ms` after its deadline."""

    def cancelled(self, operation: DelayedOperation, /) -> None:
        """Observe that the operation was dropped."""


class ObserverFactory(Protocol):
    """Makes the observers of one kind, such as those of the trace."""

    def observer(self, purgatory: str, broker_id: int, clock: Clock) -> OperationObserver:
        """Return the observer of that purgatory on that broker, for one lifetime of the broker's process."""


class PurgatoryFactory:
    """Creates the purgatories of one cluster, each with one observer of each factory."""

    def __init__(self, scheduler: Scheduler, observers: Sequence[ObserverFactory] = ()) -> None:
        self._scheduler = scheduler
        self._observers = observers

    def __call__(
        self, name: str, broker_id: int, process: Process, purge_interval: int
    ) -> DelayedOperationPurgatory[Any]:
        """Return a purgatory whose timer and expired operations run in the broker's process."""
        observers = [factory.observer(name, broker_id, process.clock) for factory in self._observers]
        purgatory: DelayedOperationPurgatory[Any] = DelayedOperationPurgatory(
            name,
            self.make_timer(name, process),
            broker_id=broker_id,
            purge_interval=purge_interval,
            observer=_as_one(observers),
        )
        for observer in observers:
            observer.attach(purgatory)
        return purgatory

    def make_timer(self, name: str, process: Process) -> LoopTimer:
        """Return a timer whose tasks run in the broker's process, for a purgatory yet to be made."""
        return LoopTimer(
            name,
            self._scheduler.loop,
            process.clock,
            run=process.deliver,
            purge_thread=not self._scheduler.is_virtual,
            context=self._scheduler.context,
        )


def _as_one(observers: Sequence[OperationObserver]) -> PurgatoryObserver | None:
    if not observers:
        return None
    return observers[0] if len(observers) == 1 else _Observers(observers)


class _Observers:
    """Passes each event to several observers, one after the other."""

    def __init__(self, observers: Sequence[OperationObserver]) -> None:
        self._observers = observers

    def tried(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        for observer in self._observers:
            observer.tried(operation, keys)

    def parked(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        for observer in self._observers:
            observer.parked(operation, keys)

    def completed(self, operation: DelayedOperation, by: str, /) -> None:
        for observer in self._observers:
            observer.completed(operation, by)

    def expired(self, operation: DelayedOperation, lateness_ms: int, /) -> None:
        for observer in self._observers:
            observer.expired(operation, lateness_ms)

    def cancelled(self, operation: DelayedOperation, /) -> None:
        for observer in self._observers:
            observer.cancelled(operation)

"""An `AsyncCluster` in virtual time whose run is recorded and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from broker_sim.cluster.async_cluster import AsyncCluster
from broker_sim.cluster.invariants import InvariantChecker
from broker_sim.cluster.operation_watch import OperationWatches

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.runtime.virtual import VirtualEventLoop

__all__ = ["SimulatedCluster"]


class SimulatedCluster(AsyncCluster):
    """The same cluster on a virtual loop.

    The loop's trace gets every step of every delayed operation, and the invariants are checked
    after each callback of the loop unless `check_invariants` is False. `latency_ms(source, target)`
    says how long each message between two nodes takes. All random choices come from the loop's seed.
    The other arguments are those of `AsyncCluster`.
    """

    def __init__(
        self,
        loop: VirtualEventLoop,
        brokers: int = 3,
        *,
        latency_ms: Callable[[int, int], int] | None = None,
        check_invariants: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(brokers, seed=loop.seed, **options)
        self._loop = loop
        self._check_invariants = check_invariants
        self.latency_ms = latency_ms
        self.operations = OperationWatches(loop.trace)
        self.observers.append(self.operations)

    async def open(self) -> Self:
        """Start all brokers; returns when every one of them accepts clients."""
        await super().open()
        if self._check_invariants:
            self._loop.after_step = InvariantChecker(self.nodes).check
        return self

    async def close(self) -> None:
        """Stop all brokers; does nothing the second time."""
        self._loop.after_step = None
        await super().close()

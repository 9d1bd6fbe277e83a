"""A scheduler on a virtual event loop of its own, stepped in milliseconds from outside."""

from __future__ import annotations

from broker_sim.runtime.scheduler import LoopScheduler
from broker_sim.runtime.virtual.clock import NS_PER_MS
from broker_sim.runtime.virtual.loop import VirtualEventLoop


class VirtualScheduler(LoopScheduler):
    """A `Scheduler` whose time moves only in `step` and `advance_to`. Single-threaded."""

    loop: VirtualEventLoop

    def __init__(self, seed: int = 0) -> None:
        super().__init__(VirtualEventLoop(seed, limit_s=None))

    def step(self) -> bool:
        """Run one callback, jumping to its time first; False if nothing is left to happen."""
        return self.loop.step()

    def advance_to(self, time_ms: int) -> None:
        """Run everything that is due until `time_ms`, and end there."""
        self.loop.advance_to_ns(time_ms * NS_PER_MS)

"""One run of one test in virtual time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.cluster.simulated_cluster import SimulatedCluster
from broker_sim.runtime.virtual.run import VirtualRun

if TYPE_CHECKING:
    import random

    from broker_sim.runtime.virtual.loop import VirtualEventLoop
    from broker_sim.testing.options import VirtualTimeOptions

__all__ = ["SeededRun"]


class SeededRun(VirtualRun):
    """One seed of one test: its fixtures and the test itself run on the same loop."""

    def __init__(self, options: VirtualTimeOptions, seed: int) -> None:
        # Hashes of strings that no seed repeats are told in the report of a failure instead.
        super().__init__(
            seed,
            hash_seed="any",
            order=options.order,
            limit_s=options.limit_s,
            trace_steps=options.trace_steps,
        )
        self.loop.network.latency_ms = options.latency_ms
        self._options = options

    def open_cluster(self) -> SimulatedCluster:
        """Return a cluster whose brokers accept clients; to be closed with `close_cluster`."""
        return self.wait(_cluster(self.loop, self._options).open())

    def close_cluster(self, cluster: SimulatedCluster) -> None:
        """Stop the brokers."""
        self.wait(cluster.close())


def _cluster(loop: VirtualEventLoop, options: VirtualTimeOptions) -> SimulatedCluster:
    lowest_ms, highest_ms = options.range_ms()
    draw = partial(_draw_latency_ms, loop.stream("links"), lowest_ms, highest_ms)
    return SimulatedCluster(
        loop,
        options.brokers,
        latency_ms=draw if highest_ms else None,
        check_invariants=options.check_invariants,
        configs=options.configs,
        broker_configs=options.broker_configs,
        as_version=options.as_version,
    )


def _draw_latency_ms(
    stream: random.Random,
    lowest_ms: float,
    highest_ms: float,
    source: int,
    target: int,
) -> int:
    """Return the latency between two nodes, whose timers count whole milliseconds."""
    del source, target  # all links are alike
    return round(stream.uniform(lowest_ms, highest_ms))

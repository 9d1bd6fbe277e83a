"""One run of one test in virtual time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from broker_sim.cluster.simulated_cluster import SimulatedCluster
from broker_sim.runtime.virtual.run import run

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from broker_sim.runtime.virtual.loop import VirtualEventLoop
    from broker_sim.testing.options import VirtualTimeOptions

__all__ = ["run_with_seed"]


def run_with_seed(
    test: Callable[..., Coroutine[Any, Any, object]],
    arguments: Mapping[str, Any],
    cluster_arguments: Sequence[str],
    options: VirtualTimeOptions,
    seed: int,
) -> None:
    """Run the test on a virtual loop of its own; raises what `broker_sim.runtime.virtual.run` does.

    `cluster_arguments` are the names under which it wants the cluster; without any there is none.
    """

    async def main(loop: VirtualEventLoop) -> None:
        loop.network.latency_ms = options.latency_ms
        if not cluster_arguments:
            await test(**arguments)
            return
        async with _cluster(loop, options) as cluster:
            await test(**{**arguments, **dict.fromkeys(cluster_arguments, cluster)})

    # Hashes of strings that no seed repeats are told in the report of a failure instead.
    run(
        main,
        seed,
        hash_seed="any",
        order=options.order,
        limit_s=options.limit_s,
        trace_steps=options.trace_steps,
    )


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

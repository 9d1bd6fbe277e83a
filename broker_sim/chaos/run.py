"""One run of a test under the faults of one schedule."""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.chaos import Chaos, invariant_of
from broker_sim.chaos.observer import observed
from broker_sim.cluster.simulated_cluster import SimulatedCluster
from broker_sim.runtime.virtual import run

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from broker_sim.chaos.schedule import Schedule
    from broker_sim.chaos.timeline import Moment
    from broker_sim.config import GivenValue
    from broker_sim.runtime.virtual import VirtualEventLoop
    from broker_sim.runtime.virtual.loop import Order

__all__ = ["CONFIGS", "Outcome", "run_chaos"]

CONFIGS: Final[Mapping[str, GivenValue]] = {
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3_000,
    "group.initial.rebalance.delay.ms": 300,
    "group.min.session.timeout.ms": 1_000,
    "offsets.topic.num.partitions": 1,
    "replica.fetch.backoff.ms": 200,
    "replica.lag.time.max.ms": 5_000,
    "replica.socket.timeout.ms": 3_000,
    "transaction.state.log.num.partitions": 1,
}
"""What a run has unless it is given otherwise: waits short enough that 20 s of faults see their ends."""
LIMIT_S: Final = 3_600
"""So much virtual time a run may take."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    schedule: Schedule
    digest: str
    """Of all that happened: equal for runs that took the same course."""
    virtual_s: float
    moments: tuple[Moment, ...]
    invariant: str | None = None
    """The name of what did not hold; None if the test passed."""
    error: BaseException | None = None
    """What was raised, if the test failed."""


def run_chaos(
    test: Callable[[Chaos], Coroutine[Any, Any, object]],
    schedule: Schedule,
    *,
    order: Order = "fifo",
    configs: Mapping[str, GivenValue] | None = None,
    observe: bool = False,
) -> Outcome:
    """Run `test(chaos)` on a cluster of its own in virtual time, with the faults of the schedule.

    What the test raises is part of the outcome. With `observe` the time line also tells of leaders,
    of requests that failed, and what clients log; that takes longer.
    """
    kept: list[Chaos] = []
    ended: list[tuple[str, float]] = []

    async def main(loop: VirtualEventLoop) -> None:
        loop.network.latency_ms = (0, schedule.latency_ms)
        cluster = SimulatedCluster(
            loop,
            schedule.brokers,
            latency_ms=_links(loop, schedule.latency_ms),
            check_invariants=False,
            configs={**CONFIGS, **(configs or {})},
        )
        async with cluster as kafka:
            chaos = Chaos(loop, kafka, schedule)
            kept.append(chaos)
            loop.set_exception_handler(chaos.on_error)
            with observed(chaos, loop) if observe else _quiet():
                try:
                    await test(chaos)
                finally:
                    ended.append((loop.trace.digest(), loop.time()))
                    chaos.end()

    error: Exception | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of programs that were killed
        try:
            run(main, schedule.seed, hash_seed="any", order=order, limit_s=LIMIT_S)
        except Exception as raised:
            if not ended:  # what failed is not the test
                raise
            error = raised
    digest, virtual_s = ended[0]
    return Outcome(
        schedule,
        digest,
        virtual_s,
        tuple(kept[0].timeline.moments),
        None if error is None else invariant_of(error),
        error,
    )


def _links(loop: VirtualEventLoop, latency_ms: int) -> Callable[[int, int], int] | None:
    if not latency_ms:
        return None
    draw = loop.stream("links").randint
    return lambda _source, _target: draw(0, latency_ms)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave logs out: warnings of brokers and clients are what faults do, thousands of times."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)

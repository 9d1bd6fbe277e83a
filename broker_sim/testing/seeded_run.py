"""One run of one test in virtual time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.runtime.virtual.errors import VirtualRunError
from broker_sim.runtime.virtual.run import VirtualRun
from broker_sim.runtime.virtual.task_order import GivenOrder, deviation_text
from broker_sim.testing.cluster_text import cluster_text
from broker_sim.testing.failure_watch import FailureWatch

if TYPE_CHECKING:
    import random
    from asyncio import Handle
    from collections.abc import Coroutine, Sequence

    from broker_sim.runtime.virtual.loop import VirtualEventLoop
    from broker_sim.runtime.virtual.task_order import Deviation
    from broker_sim.testing.options import VirtualTimeOptions

__all__ = ["SeededRun"]


class SeededRun(VirtualRun):
    """One seed of one test: its fixtures and the test itself run on the same loop."""

    def __init__(
        self,
        options: VirtualTimeOptions,
        seed: int,
        deviations: Sequence[Deviation] | None = None,
    ) -> None:
        """With `deviations` the order of tasks is the given one, whatever the options say."""
        # Hashes of strings that no seed repeats are told in the report of a failure instead.
        super().__init__(
            seed,
            hash_seed="any",
            order=options.order,
            limit_s=options.limit_s,
            trace_steps=options.trace_steps,
        )
        self.orders: list[str] = []
        """What ran before what, of given deviations."""
        if deviations is None:
            deviations = options.given_deviations()
        if deviations is not None:
            order = self.loop.task_order = GivenOrder(self.loop.clock, deviations)
            order.on_deviation = self._note_deviation
        self.loop.network.latency_ms = options.latency_ms
        self._options = options
        self._cluster: SimulatedCluster | None = None
        self._watch: FailureWatch | None = None
        self._at_failure: str | None = None
        self._before: BaseException | None = None
        """What the test was handling when the run failed."""

    def _note_deviation(self, ready: Sequence[Handle], number: int) -> None:
        if number > 1:
            self.orders.pop()
        self.orders.append(f"{self.loop.time():9.3f}  {deviation_text(ready, number)}")

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """Where the run was not first in, first out."""
        order = self.loop.task_order
        return () if order is None else order.deviations

    def open_cluster(self) -> SimulatedCluster:
        """Return a cluster whose brokers accept clients; to be closed with `close_cluster`."""
        cluster = self._cluster = self.wait(_cluster(self.loop, self._options).open())
        cluster.keep_requests()
        return cluster

    def close_cluster(self) -> None:
        """Stop the brokers."""
        cluster, self._cluster = self._cluster, None
        assert cluster is not None
        self.wait(cluster.close())

    def wait_for_test(self, test: Coroutine[Any, Any, object]) -> None:
        """Run the test; `report` then tells what was there when it failed."""

        async def main(watch: FailureWatch) -> None:
            await watch

        self._watch = FailureWatch(test, self._look)
        try:
            self.wait(main(self._watch), name=getattr(test, "__qualname__", None))
        except VirtualRunError as error:
            if isinstance(self._before, AssertionError):
                self._before.add_note(f"and then the test did not end: {error}")
                raise self._before from None
            raise
        finally:
            self._watch = None

    def on_failure(self, error: BaseException) -> None:
        """Keep what was there when the error was raised; its contexts may be closed by now."""
        if self._at_failure is not None:
            return
        if self._watch is None:
            self._at_failure = self._look()
            return
        self._at_failure = self._watch.at(error)
        self._before = self._watch.leaving
        if self._before is not None:
            error.add_note(f"the test handles {self._before!r:.200}")

    def report(self) -> str:
        """Return the seed, the virtual time and what was there then: of the first failure, if there is one."""
        return self._at_failure or self._look()

    def _look(self) -> str:
        events = super().report()
        return events if self._cluster is None else f"{events}\n{cluster_text(self._cluster)}"


def _cluster(loop: VirtualEventLoop, options: VirtualTimeOptions) -> SimulatedCluster:
    lowest_ms, highest_ms = options.range_ms()
    draw = partial(_draw_latency_ms, loop.stream("links"), lowest_ms, highest_ms)
    return SimulatedCluster(
        loop,
        options.brokers,
        latency_ms=draw if highest_ms else None,
        check_invariants=options.check_invariants,
        configs=options.configs,
        topics=options.topics,
        broker_configs=options.broker_configs,
        as_version=options.as_version,
        security=options.security,
        users=options.users,
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

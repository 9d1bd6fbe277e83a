"""One run of one test in virtual time."""

from __future__ import annotations

import inspect
import os
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from broker_sim.chaos.observer import Leaders, application_logs, note_failed_requests
from broker_sim.chaos.recorder import Recorder
from broker_sim.chaos.timeline import Timeline
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.runtime.virtual.core.errors import VirtualRunError
from broker_sim.runtime.virtual.run import ENDING_S, VirtualRun
from broker_sim.runtime.virtual.stdlib import pinned_hash_seed
from broker_sim.runtime.virtual.task_order import GivenOrder, deviation_text
from broker_sim.testing import VIRTUAL_MARKER
from broker_sim.testing.failure_watch import FailureWatch

if TYPE_CHECKING:
    import random
    from asyncio import Handle
    from collections.abc import Coroutine, Sequence

    from broker_sim.page.recording import RecordedRun
    from broker_sim.runtime.virtual.loop import VirtualEventLoop
    from broker_sim.runtime.virtual.task_order import Deviation
    from broker_sim.testing.options import VirtualTimeOptions


class SeededRun(VirtualRun):
    """One seed of one test: its fixtures and the test itself run on the same loop."""

    def __init__(
        self,
        options: VirtualTimeOptions,
        seed: int,
        deviations: Sequence[Deviation] | None = None,
        *,
        record: bool = False,
    ) -> None:
        """`deviations` override the task order of the options; `record` makes `recorded` available."""
        super().__init__(seed, order=options.order, limit_s=options.limit_s, trace_steps=options.trace_steps)
        self.orders: list[str] = []
        """One line for each deviation: which task ran before which."""
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
        self._deviations: tuple[Deviation, ...] | None = None
        """Deviations up to the end of the test or its first failure, once that is known."""
        self._records = record
        self._recorder: Recorder | None = None
        self._timeline = Timeline(self.loop.time)
        self._end_s: float | None = None
        """Virtual time of the test's end or failure in seconds, in a recorded run."""
        self._failed: BaseException | None = None
        """The failure of a test that afterwards did not end."""

    def _note_deviation(self, ready: Sequence[Handle], number: int) -> None:
        if number > 1:
            self.orders.pop()
        self.orders.append(f"{self.loop.time():9.3f}  {deviation_text(ready, number)}")

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """Points at which tasks did not run first in, first out, before the outcome was known."""
        return self._deviations_now() if self._deviations is None else self._deviations

    def _deviations_now(self) -> tuple[Deviation, ...]:
        order = self.loop.task_order
        return () if order is None else order.deviations

    def open_cluster(self) -> SimulatedCluster:
        """Return a running cluster; close it with `close_cluster`."""
        cluster = self._cluster = self.wait(_cluster(self.loop, self._options).open())
        cluster.keep_requests()
        if self._records:
            self._record(cluster)
        return cluster

    def _record(self, cluster: SimulatedCluster) -> None:
        recorder = self._recorder = Recorder(cluster, self.loop)
        leaders = Leaders(cluster, self._timeline)
        check = self.loop.after_step

        def look() -> None:
            if check is not None:
                check()
            leaders.look()
            recorder.look()

        self.loop.after_step = look
        self._resources.enter_context(application_logs(self._timeline))

    def _end_recording(self) -> None:
        if self._recorder is not None and self._end_s is None:
            self._end_s = self.loop.time()
            self._recorder.end()
            assert self._cluster is not None
            note_failed_requests(self._cluster, self._timeline, self.loop)

    def recorded(self, title: str, failure: str | None) -> RecordedRun | None:
        """Return the run as the page plays it; None without a cluster or `record`."""
        if self._recorder is None or self._end_s is None:
            return None
        recording = self._recorder.finish(self._timeline.moments, (), self._end_s)
        return recording.run(title, failure, self._end_s * 1_000)

    def close_cluster(self) -> None:
        """Stop the brokers."""
        self._end_recording()
        cluster, self._cluster = self._cluster, None
        assert cluster is not None
        self.wait(cluster.close())

    def wait_for_test(self, test: Coroutine[Any, Any, object]) -> None:
        """Run the test; if it fails, `report` describes the moment of the failure."""

        async def main(watch: FailureWatch) -> None:
            await watch

        self._watch = FailureWatch(test, self._look, self._on_ending)
        try:
            self.wait(main(self._watch), name=getattr(test, "__qualname__", None))
            self.loop.time_limit.lift()
        except VirtualRunError as error:
            if self._failed is None:
                raise
            self._failed.add_note(f"and then the test did not end: {error}")
        finally:
            self._watch = None
            self._end_recording()
            if self._at_failure is None:
                self._deviations = self._deviations_now()
        if self._failed is not None:
            raise self._failed  # outside of `except`, so that it keeps its cause and context

    def _on_ending(self, error: BaseException | None) -> None:
        """Shorten the time limit while a failed test closes its context managers."""
        if error is None:
            self.loop.time_limit.lift()
        else:
            self.loop.time_limit.shorten(ENDING_S)

    def on_failure(self, error: BaseException) -> None:
        """Keep the state of the moment when the error was raised; context managers may have closed since."""
        self._end_recording()
        if self._at_failure is not None:
            return
        self._deviations = self._deviations_now()
        if self._watch is None:
            self._at_failure = self._look()
            return
        self._at_failure = self._watch.at(error)
        before, ending = self._watch.leaving, self._watch.ending
        if isinstance(error, VirtualRunError):
            if isinstance(before, AssertionError):
                self._failed = before
            elif isinstance(ending, Exception | pytest.fail.Exception):
                self._failed = ending
        if before is not None:
            error.add_note(f"the test handles {before!r:.200}")

    def report(self) -> str:
        """Return the seed, the virtual time, the last events and the cluster, at the first failure or now."""
        return self._at_failure or self._look()

    def _look(self) -> str:
        events = super().report()
        return events if self._cluster is None else f"{events}\n{self._cluster.describe()}"


def _cluster(loop: VirtualEventLoop, options: VirtualTimeOptions) -> SimulatedCluster:
    lowest_ms, highest_ms = options.range_ms()
    draw = partial(_draw_latency_ms, loop.stream("links"), lowest_ms, highest_ms)
    return SimulatedCluster(
        loop,
        options.brokers,
        first_broker_id=options.first_broker_id,
        latency_ms=draw if highest_ms else None,
        check_invariants=options.check_invariants,
        configs=options.configs,
        topics=options.topics,
        broker_configs=options.broker_configs,
        as_version=options.as_version,
        security=options.security,
        users=options.users,
    )


def _draw_latency_ms(stream: random.Random, lowest_ms: float, highest_ms: float, source: int, target: int) -> int:
    """Return the latency between two nodes in whole ms, the resolution of their timers."""
    del source, target  # all links are alike
    return round(stream.uniform(lowest_ms, highest_ms))


def how_to_repeat(item: pytest.Item, seed: int, passed: int, plugin: str) -> str:
    """Return the command that runs the test alone with this seed, and whether it must fail again."""
    config = item.config
    hash_seed: int | str | None = pinned_hash_seed()
    if not inspect.iscoroutinefunction(getattr(item, "obj", None)):
        hash_seed = hash_seed or "0"  # the default of the test's own process
    load = f"-p {plugin} " if plugin in config.getoption("plugins") else ""
    # Node ids are relative to the root directory, but the command runs in the present one.
    file = os.path.relpath(item.path, config.invocation_params.dir)
    node_id = shlex.quote(f"{file}::{item.nodeid.partition('::')[2]}")
    lines = [
        f"seed {seed} failed, {passed} before it passed; repeat it alone:",
        f"  PYTHONHASHSEED={hash_seed or 0} pytest {load}{node_id} --virtual-seed={seed}",
    ]
    marker = item.get_closest_marker(VIRTUAL_MARKER)
    if marker is not None and marker.kwargs.get("order") == "seeded" and not config.getoption("virtual_shrink"):
        lines.append("--virtual-shrink finds the fewest order deviations that make it fail")
    if hash_seed is None:
        lines.append(
            "PYTHONHASHSEED was not set in this run. If the program iterates over sets of strings, the\n"
            "command may take another course; set it for all tests to make every failure repeat."
        )
    return "\n".join(lines)

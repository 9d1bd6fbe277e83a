"""A whole comparison: every scenario runs on both sides, cluster by cluster."""

from __future__ import annotations

import gc
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

from integration.comparison.verdict import ScenarioResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from integration.comparison.differences import KnownDifference
    from integration.comparison.runs import Runner, Side
    from integration.scenarios.scenario import Scenario

__all__ = ["compare_sides", "settled_heap"]


def compare_sides(
    kafka: Side,
    sim: Side,
    scenarios: Sequence[Scenario],
    *,
    repeats: int,
    known: Sequence[KnownDifference],
    on_result: Callable[[ScenarioResult], None],
) -> list[ScenarioResult]:
    """Run `scenarios` on both sides at the same time; `on_result` gets each result.

    Scenarios with the same broker configurations share a cluster on each side. The results are in
    the order of `scenarios`. Raises `ReferenceClusterError` when the reference does not start;
    trouble within a scenario is in its result.
    """
    results = {scenario.name: ScenarioResult(scenario) for scenario in scenarios}
    by_configs = sorted(scenarios, key=lambda scenario: scenario.configs)
    with ThreadPoolExecutor(2, thread_name_prefix="side") as threads:

        def run(theirs: Runner, ours: Runner, result: ScenarioResult) -> None:
            for repeat in range(1, repeats + 1):
                at_kafka = threads.submit(theirs.run, result.scenario, repeat)
                at_sim = threads.submit(ours.run, result.scenario, repeat)
                result.add(at_kafka.result(), at_sim.result(), known)
            on_result(result)

        for configs, group in groupby(by_configs, key=lambda scenario: scenario.configs):
            left = deque(group)
            while left:
                with kafka.open(configs) as theirs, sim.open(configs) as ours, settled_heap():
                    while left:
                        result = results[left.popleft().name]
                        run(theirs, ours, result)
                        if result.has_trouble:
                            break  # the clusters may not be healthy any more
    return list(results.values())


@contextmanager
def settled_heap() -> Iterator[None]:
    """Exclude all objects that exist now from garbage collection.

    A full collection takes 20 ms, in which the simulator, which runs in this process, does nothing.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()

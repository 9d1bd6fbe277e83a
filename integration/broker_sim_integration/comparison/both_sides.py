"""A complete comparison: each scenario runs on both sides, cluster by cluster."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.comparison.distribution import Machines
from broker_sim_integration.comparison.intervals import covered_ms
from broker_sim_integration.comparison.machine import collections_of_new_objects_only
from broker_sim_integration.comparison.verdict import ScenarioResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim_integration.comparison.differences import KnownDifference
    from broker_sim_integration.comparison.machine import Stalls
    from broker_sim_integration.comparison.runs import Run, Runner, Side
    from broker_sim_integration.scenarios.scenario import Scenario


def compare_sides(
    kafka: Side,
    sim: Side,
    scenarios: Sequence[Scenario],
    *,
    repeats: int,
    known: Sequence[KnownDifference],
    on_result: Callable[[ScenarioResult], None],
    control: Stalls,
) -> list[ScenarioResult]:
    """Run `scenarios` on both sides at the same time; `on_result` is called with each result.

    Scenarios with the same broker configurations share a cluster on each side. The results are in the order
    of `scenarios`. `control` is the control timer that runs beside them. Raise `ReferenceClusterError` if
    the reference does not start and `SimulatorError` if the simulator does not; trouble within a scenario
    is part of its result.
    """
    results = {scenario.name: ScenarioResult(scenario) for scenario in scenarios}
    by_configs = sorted(scenarios, key=lambda scenario: scenario.configs)
    with collections_of_new_objects_only(), ThreadPoolExecutor(2, thread_name_prefix="side") as threads:

        def run(theirs: Runner, ours: Runner, result: ScenarioResult) -> None:
            repeat = 0
            while repeat < repeats or result.wants_another(repeats):
                repeat += 1
                began_ms = now_ms()
                at_kafka = threads.submit(theirs.run, result.scenario, repeat)
                at_sim = threads.submit(ours.run, result.scenario, repeat)
                seen = [_excused(side.result(), control) for side in (at_kafka, at_sim)]
                machine = control.lateness(began_ms)
                machines = Machines(seen[0].control or machine, machine)
                result.add(seen[0], seen[1], known, machines)
            on_result(result)

        for configs, group in groupby(by_configs, key=lambda scenario: scenario.configs):
            left = deque(group)
            while left:
                with kafka.open(configs) as theirs, sim.open(configs) as ours:
                    while left:
                        result = results[left.popleft().name]
                        run(theirs, ours, result)
                        if result.has_trouble:
                            break  # the clusters may not be healthy any more
    return list(results.values())


def _excused(run: Run, control: Stalls) -> Run:
    """Return the run with each observation's `stalled_ms`: the time in which nothing could run while it was overdue.

    That is, the control timer was stalled or the side itself was kept from running.
    """
    stopped = control.stalls(now_ms()) + run.starved
    seen = [one.excused(partial(covered_ms, stopped)) for one in run.observations]
    return replace(run, observations=seen)

"""Lateness of both sides in a complete comparison: step by step, and all single responses together.

Steps that were repeated often are judged within their scenarios. The single responses of one class of timing
are judged here, as one distribution. Responses with a spread are excluded, and so are the late repeats of a
scenario whose repeats were mostly in time. A response with several partitions counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.comparison.distribution import LatenessComparison, Machines, compare_samples
from broker_sim_integration.comparison.timeliness import distributed_steps, excused_lateness_ms
from broker_sim_integration.observations import TimingClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim_integration.comparison.runs import Run
    from broker_sim_integration.comparison.verdict import ScenarioResult


def compare_lateness(results: Iterable[ScenarioResult], machines: Machines) -> list[LatenessComparison]:
    """Return a comparison per step that was repeated often, then one per class of timing."""
    found = []
    kafka: dict[TimingClass, list[float]] = {}
    sim: dict[TimingClass, list[float]] = {}
    for result in results:
        counted = result.counted_repeats
        if counted:
            found += result.distributions[counted[-1]]
        for repeat in counted:
            for samples, runs in ((kafka, result.kafka), (sim, result.sim)):
                for kind, lateness_ms in singles(runs[repeat - 1]):
                    samples.setdefault(kind, []).append(lateness_ms)
    classes = [
        compare_samples(f"all {kind.value}", kind, kafka[kind], sim[kind], machines=machines)
        for kind in TimingClass
        if kind in kafka and kind in sim
    ]
    return [*found, *classes]


def singles(run: Run) -> Iterator[tuple[TimingClass, float]]:
    """Yield the class and lateness in ms of each response that is judged together with the others of its class."""
    distributed = distributed_steps(run.observations)
    responses = {
        (seen.timing.kind, seen.timing.due_ms, seen.elapsed_ms): seen
        for seen in run.observations
        if seen.step not in distributed and not seen.timing.spread_ms
    }
    for (kind, _due_ms, _elapsed_ms), seen in responses.items():
        if kind is not TimingClass.UNTIMED:
            yield kind, excused_lateness_ms(seen)

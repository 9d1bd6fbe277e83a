"""Random runs of many seeds, on several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.chaos.random_run.run import RunFailedError, RunSummary, run_schedule
from broker_sim.chaos.random_run.schedule import draw_schedule
from broker_sim.runtime.event_log import quiet_logs
from broker_sim.runtime.process_pool import run_on_processes

if TYPE_CHECKING:
    from collections.abc import Iterator


class SeedResult(NamedTuple):
    """How the run of one seed ended: with a summary, or with what did not hold."""

    seed: int
    summary: RunSummary | None
    invariant: str = ""
    text: str = ""


def run_seed(seed: int, duration_ms: int, power_loss: bool) -> SeedResult:
    """Run the schedule of one seed; an error of the run is part of the result."""
    schedule = draw_schedule(seed, duration_ms=duration_ms, power_loss=power_loss)
    try:
        return SeedResult(seed, run_schedule(schedule))
    except RunFailedError as error:
        return SeedResult(seed, None, error.invariant, str(error))


def run_seeds(first: int, count: int, *, duration_ms: int, jobs: int, power_loss: bool = False) -> Iterator[SeedResult]:
    """Yield the results of `count` seeds as they come; with several jobs in any order."""
    seeds = range(first, first + count)
    work = [(seed, duration_ms, power_loss) for seed in seeds]
    yield from run_on_processes(_run, work, jobs)


def _run(work: tuple[int, int, bool]) -> SeedResult:
    # Not around the loop: whoever stops to take results would leave all logs disabled.
    with quiet_logs():
        return run_seed(*work)

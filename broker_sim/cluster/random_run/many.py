"""Random runs of many seeds, on several processes."""

from __future__ import annotations

import logging
import multiprocessing
import signal
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.cluster.random_run.run import RunFailedError, RunSummary, run_schedule
from broker_sim.cluster.random_run.schedule import draw_schedule
from broker_sim.runtime.quiet_logs import quiet_logs

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SeedResult", "run_seed", "run_seeds"]

SEEDS_AT_ONCE: Final = 4


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


def run_seeds(
    first: int, count: int, *, duration_ms: int, jobs: int, power_loss: bool = False
) -> Iterator[SeedResult]:
    """Yield the results of `count` seeds as they come; with several jobs in any order."""
    seeds = range(first, first + count)
    work = [(seed, duration_ms, power_loss) for seed in seeds]
    if jobs == 1:
        for each in work:
            # Not around the loop: whoever stops to take results would leave all logs disabled.
            with quiet_logs():
                result = run_seed(*each)
            yield result
        return
    # A process of its own from the start: a copy of this one might hold another thread's lock.
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, _start_worker) as pool:
        yield from pool.imap_unordered(_run, work, chunksize=SEEDS_AT_ONCE)


def _run(work: tuple[int, int, bool]) -> SeedResult:
    return run_seed(*work)


def _start_worker() -> None:
    # The process that started this one decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)

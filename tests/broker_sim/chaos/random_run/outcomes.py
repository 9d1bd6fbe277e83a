"""How random runs end, in short: the invariant that failed, and the smallest schedule that still fails."""

from broker_sim.chaos.faults.shrink import shrink
from broker_sim.chaos.random_run.random_runs import (
    MAX_TRIES,
    RandomOutcome,
    RandomRuns,
    fewer_clients,
    simpler_cluster,
)


def failed_invariant(schedule):
    """Return the name of what did not hold in the run of a schedule; None if it passed."""
    return RandomRuns().run(schedule).invariant


def shrunk(schedule, invariant, invariant_of, **limits):
    """Shrink a schedule that failed with the invariant; `invariant_of(schedule)` stands for a run."""

    def run(candidate):
        return RandomOutcome(candidate, invariant=invariant_of(candidate))

    first = RandomOutcome(schedule, invariant=invariant)
    return shrink(first, run, fewer_clients, simpler_cluster, unit_ms=1, **{"max_tries": MAX_TRIES, **limits})

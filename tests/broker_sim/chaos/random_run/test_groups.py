"""Groups of every kind in random runs: they outlive their coordinators, and a seed repeats."""

import pytest

from broker_sim.chaos.random_run import run_schedule

from .groups_alone import GroupRuns

CLASSIC, CONSUMER, STREAMS = map(GroupRuns, ("group_members", "consumer_members", "streams_members"))
DISTURBED = [
    *[each for kind in (CLASSIC, CONSUMER, STREAMS) for each in (*kind.moved[:2], *kind.killed[:2])],
    *CONSUMER.cut_off[:2],
    *STREAMS.cut_off[:2],
]


@pytest.mark.parametrize("schedule", DISTURBED)
def test_group_survives_its_coordinators(schedule):
    summary = run_schedule(schedule)
    assert summary.actions > 0
    assert summary.commits > 5


@pytest.mark.parametrize("kind", [CLASSIC, CONSUMER, STREAMS])
def test_same_seed_gives_the_same_trace_with_a_group(kind):
    first, second = (run_schedule(kind.moved[0]) for _ in range(2))
    assert first.digest == second.digest

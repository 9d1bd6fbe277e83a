"""Runs of many seeds leave the logging of the program as it was."""

import logging

import pytest

from broker_sim.chaos.random_run import many
from broker_sim.chaos.random_run.many import SeedResult, run_seeds


@pytest.fixture
def disabled_levels(monkeypatch):
    """Return the levels that were disabled during the runs, which do nothing else."""
    seen = []

    def run_seed(seed, *_):
        seen.append(logging.root.manager.disable)
        return SeedResult(seed, None)

    monkeypatch.setattr(many, "run_seed", run_seed)
    return seen


def test_logs_are_disabled_during_a_run_only(disabled_levels):
    results = run_seeds(1, 3, duration_ms=1, jobs=1)
    assert next(results).seed == 1
    # Whoever takes no further results, as a test that fails here, has its logs.
    assert logging.root.manager.disable == 0
    assert [result.seed for result in results] == [2, 3]
    assert disabled_levels == [logging.CRITICAL] * 3
    assert logging.root.manager.disable == 0

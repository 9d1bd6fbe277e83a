"""Runs of many seeds leave the logging of the program as it was."""

import logging

import pytest

from broker_sim.chaos.random_run import random_runs
from broker_sim.chaos.random_run.random_runs import RandomRuns
from broker_sim.chaos.search import run_seeds


@pytest.fixture
def disabled_levels(monkeypatch):
    """Return the levels that were disabled during the runs, which do nothing else."""
    seen = []
    monkeypatch.setattr(random_runs, "run_schedule", lambda _: seen.append(logging.root.manager.disable))
    return seen


def test_logs_are_disabled_during_a_run_only(disabled_levels):
    outcomes = run_seeds(RandomRuns(duration_ms=1_000), range(1, 4), jobs=1)
    assert next(outcomes).seed == 1
    # Whoever takes no further results, as a test that fails here, has its logs.
    assert logging.root.manager.disable == 0
    assert [outcome.seed for outcome in outcomes] == [2, 3]
    assert disabled_levels == [logging.CRITICAL] * 3
    assert logging.root.manager.disable == 0

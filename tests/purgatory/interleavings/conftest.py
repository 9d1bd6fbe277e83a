"""Runs all interleavings of small programs, and gives them a purgatory to act on."""

import pytest

from tests.purgatory.interleavings.explorer import Explorer, Program, next_decisions
from tests.purgatory.interleavings.world import World


@pytest.fixture
def explore(monkeypatch):
    """Run all interleavings: `explore(scenario)` returns how many there are.

    The scenario is given the explorer, makes its objects, and returns two or more functions and a
    check of how it has ended. There must be more than `more_than` interleavings: a scenario that
    has none proves nothing. `preemptions` limits the switches, for programs of too many steps.
    """

    def explore_all(scenario, *, more_than=1, preemptions=None):
        decisions, runs, programs = [], 0, []
        while decisions is not None:
            explorer = Explorer(preemptions)
            with monkeypatch.context() as patch:
                explorer.patch(patch)
                *functions, check = scenario(explorer)
                programs = programs or [Program() for _ in functions]
                explorer.run(programs, functions, decisions)
                try:
                    check()
                except AssertionError as failure:
                    failure.add_note(f"decisions: {explorer.taken}")
                    raise
            runs += 1
            decisions = next_decisions(explorer.taken, explorer.options)
        for program in programs:
            program.begin(None, None)
            program.baton.release()
        assert runs > more_than
        return runs

    return explore_all


@pytest.fixture
def world():
    """Make a world: `world(explorer, lock="own")`; see World."""
    return World

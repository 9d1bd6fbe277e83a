"""Observations, runs and scenarios as the tests of the comparison need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from broker_sim_integration.comparison.runs import Run
from broker_sim_integration.comparison.verdict import ScenarioResult
from broker_sim_integration.observations import Observation, at_once
from broker_sim_integration.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def make_scenario() -> Callable[..., Scenario]:
    """Return a maker of scenarios without steps."""

    def make(name: str = "a_claim", family: str = "family") -> Scenario:
        def function(cluster):
            yield from ()

        return Scenario(name, family, "What is seen.", "1 x 1", (), frozenset(), function)

    return make


@pytest.fixture
def see() -> Callable[..., Observation]:
    """Return a maker of observations that were answered at once, without error."""

    def make(step: str = "step", elapsed_ms: float = 1.0, **fields) -> Observation:
        known = {"error_code": 0, "timing": at_once(), **fields}
        return Observation(step, elapsed_ms=elapsed_ms, **known)

    return make


@pytest.fixture
def result_of(make_scenario) -> Callable[..., ScenarioResult]:
    """Return a maker of results from pairs of observations of Kafka and the simulator, one per repeat."""

    def make(*pairs, name: str = "a_claim", known=()) -> ScenarioResult:
        result = ScenarioResult(make_scenario(name))
        for kafka, sim in pairs:
            result.add(
                kafka if isinstance(kafka, Run) else Run(list(kafka)),
                sim if isinstance(sim, Run) else Run(list(sim)),
                known,
            )
        return result

    return make

"""The quick scenarios against the shipped recording of a real Kafka: no Docker, no Java."""

import pytest
from broker_sim_integration.comparison.recorded import RecordedSide
from broker_sim_integration.comparison.runs import SimulatorSide
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.scenarios.catalogue import select

QUICK_FAMILIES = ("produce_acks", "fetch_limits", "idempotence", "limits_invalid", "pipelining")
QUICK = [found for found in select(QUICK_FAMILIES) if not found.configs]


@pytest.fixture(scope="module")
def recorded():
    with RecordedSide().open(()) as runner:
        yield runner


@pytest.fixture(scope="module")
def simulator():
    with SimulatorSide().open(()) as runner:
        yield runner


@pytest.mark.threads
@pytest.mark.usefixtures("collects_little")
@pytest.mark.parametrize("scenario", QUICK, ids=lambda scenario: scenario.name)
def test_the_simulator_answers_as_the_recorded_kafka(scenario, recorded, simulator, play):
    result = play(scenario, recorded, simulator)
    assert result.verdict in {Verdict.AGREED, Verdict.DOCUMENTED}, result.trouble or result.differences

import pytest
from broker_sim_integration.comparison.runs import SimulatorSide
from broker_sim_integration.scenarios.catalogue import select


@pytest.mark.threads
def test_every_repeat_of_a_scenario_observes_the_same():
    (scenario,) = select(["topics_of_one_request_succeed_and_fail_alone"])
    with SimulatorSide().open(()) as simulator:
        first, second = simulator.run(scenario, 1), simulator.run(scenario, 2)
    assert first.trouble is None
    assert [seen.exact() for seen in first.observations] == [seen.exact() for seen in second.observations]

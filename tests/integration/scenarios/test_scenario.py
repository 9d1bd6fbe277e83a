"""What the decorator keeps about a scenario."""

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.scenarios.scenario import Scenario, scenario


def test_decorator_stores_the_needs_of_the_scenario():
    @scenario(topology="2 x 2", configs={"b": "2", "a": "1"}, needs={Fault.KILL})
    def claim(cluster):
        """What is
        observed.
        """

    (marked,) = (value for value in vars(claim).values() if isinstance(value, Scenario))
    assert (marked.name, marked.description) == ("claim", "What is observed.")
    assert marked.configs == (("a", "1"), ("b", "2"))
    assert (marked.topology, marked.needs) == ("2 x 2", {Fault.KILL})

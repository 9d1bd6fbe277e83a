from broker_sim_integration.scenarios.catalogue import CATALOGUE
from broker_sim_integration.scenarios.demo import CONFIGS, DEMO, demo_scenarios
from broker_sim_integration.scenarios.helpers.broker_configs import QUICK_FENCING
from broker_sim_integration.scenarios.helpers.group_configs import QUICK_GROUPS


def test_all_of_the_demo_is_played_on_one_cluster():
    assert {found.configs for found in demo_scenarios()} == {tuple(sorted(CONFIGS.items()))}


def test_no_scenario_of_the_demo_needs_another_cluster():
    names = {found.name for found in demo_scenarios()}
    needed = {found.configs for found in CATALOGUE if found.name in names}
    quick = (QUICK_FENCING, QUICK_GROUPS)
    assert needed == {(), *(tuple(sorted(configs.items())) for configs in quick)}


def test_the_demo_is_of_the_catalogue():
    chosen = [name for names in DEMO.values() for name in names]
    assert [found.name for found in demo_scenarios()] == chosen
    assert len(set(chosen)) == len(chosen)

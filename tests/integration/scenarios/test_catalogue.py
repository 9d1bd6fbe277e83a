import pkgutil
from collections import Counter

import pytest
from broker_sim_integration.comparison.recorded import HOW_TO_RECORD, RECORDINGS, RecordedSide
from broker_sim_integration.comparison.version import scenario_version
from broker_sim_integration.reference.jars import KAFKA_VERSIONS
from broker_sim_integration.scenarios import families
from broker_sim_integration.scenarios.catalogue import CATALOGUE, FAMILIES, select
from broker_sim_integration.scenarios.document import catalogue_markdown


def test_every_family_module_is_in_the_catalogue():
    prefix = f"{families.__name__}."
    found = {
        module.name
        for module in pkgutil.walk_packages(families.__path__, prefix)
        if not module.ispkg and ".support." not in module.name
    }
    assert {module.__name__ for module in FAMILIES} == found
    assert {scenario.function.__module__ for scenario in CATALOGUE} == found


@pytest.mark.parametrize("release", KAFKA_VERSIONS)
def test_shipped_recording_is_complete_and_current(release):
    recorded = RecordedSide(RECORDINGS / release).versions
    wanted = {found.name: scenario_version(found) for found in CATALOGUE}
    stale = {name for name, version in wanted.items() if recorded.get(name) != version}
    assert sorted(stale | (recorded.keys() - wanted.keys())) == [], HOW_TO_RECORD


def test_every_scenario_has_a_name_of_its_own():
    repeated = [name for name, count in Counter(s.name for s in CATALOGUE).items() if count > 1]
    assert repeated == []


def test_every_scenario_has_a_description_and_a_topology():
    for found in CATALOGUE:
        assert found.description, found.name
        assert found.topology, found.name


def test_markdown_page_describes_every_scenario():
    page = catalogue_markdown()
    assert [scenario.name for scenario in CATALOGUE if f"`{scenario.name}`" not in page] == []


def test_scenarios_are_found_by_name_family_and_pattern():
    some = CATALOGUE[0]
    assert select([some.name]) == [some]
    assert some in select([some.family])
    assert select([f"{some.family}/{some.name}"]) == [some]
    assert select([]) == list(CATALOGUE)


def test_a_pattern_that_fits_nothing_is_refused():
    with pytest.raises(ValueError, match="unknown scenario 'nothing_like_it'"):
        select(["nothing_like_it"])

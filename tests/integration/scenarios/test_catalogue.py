from collections import Counter
from pathlib import Path

import pytest

from integration.scenarios.catalogue import CATALOGUE, catalogue_version, select
from integration.scenarios.document import catalogue_markdown

ROOT = Path(__file__).parents[3]
LEAST_SCENARIOS = 80


def test_the_catalogue_has_at_least_eighty_scenarios():
    assert len(CATALOGUE) >= LEAST_SCENARIOS


def test_every_scenario_has_a_name_of_its_own():
    repeated = [name for name, count in Counter(s.name for s in CATALOGUE).items() if count > 1]
    assert repeated == []


def test_every_scenario_says_in_one_line_what_is_seen():
    for found in CATALOGUE:
        assert found.description, found.name
        assert found.topology, found.name


def test_the_document_is_what_the_catalogue_says():
    shipped = (ROOT / "docs" / "scenarios.md").read_text()
    assert shipped == catalogue_markdown(), "broker-sim-compare list --markdown > docs/scenarios.md"


def test_scenarios_are_found_by_name_family_and_pattern():
    some = CATALOGUE[0]
    assert select([some.name]) == [some]
    assert some in select([some.family])
    assert select([f"{some.family}/{some.name}"]) == [some]
    assert select([]) == list(CATALOGUE)


def test_a_pattern_that_fits_nothing_is_refused():
    with pytest.raises(ValueError, match="no scenario is called 'nothing_like_it'"):
        select(["nothing_like_it"])


def test_the_version_changes_with_the_scenarios():
    assert catalogue_version(CATALOGUE) == catalogue_version(CATALOGUE)
    assert catalogue_version(CATALOGUE[1:]) != catalogue_version(CATALOGUE)

"""The version of a scenario changes with all that its observations depend on, and nothing else."""

import ast
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from broker_sim_integration.comparison import version
from broker_sim_integration.comparison.version import catalogue_version, outline, scenario_version
from broker_sim_integration.scenarios.catalogue import CATALOGUE

outlined = cache(outline)

MODULE = '''
"""What is seen."""
WAIT_MS = 500
"""How long it waits."""


def helper():
    """Return the wait."""
    return WAIT_MS  # in ms


class Kept:
    """A kept thing."""

    size = 1
'''


def test_docstrings_comments_and_layout_are_not_part_of_the_outline():
    other = MODULE.replace("What is seen", "Seen").replace("How long it waits", "A time")
    other = other.replace("Return the wait.", "Tell it.").replace("  # in ms", "").replace("\n\n", "\n")
    assert outline(other) == outline(MODULE)


@pytest.mark.parametrize("part", ["500", "WAIT_MS", "helper", "Kept", "size = 1"])
def test_constants_helpers_and_names_are_part_of_the_outline(part):
    assert outline(MODULE.replace(part, f"{part}0")) != outline(MODULE)


def test_outline_has_no_fields_that_are_empty():
    function = ast.parse("def f(): pass").body[0]
    assert getattr(function, "type_params", []) == []
    assert "type_params" not in outline("def f(): pass")
    assert "None" not in outline("def f(): pass")


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the shared files, which may be changed; forgets what was read before."""
    for name in version.SHARED:
        path = version.ROOT / name
        for file in path.rglob("*.py") if path.is_dir() else [path]:
            copy = tmp_path / file.relative_to(version.ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(file.read_text())
    monkeypatch.setattr(version, "ROOT", tmp_path)
    monkeypatch.setattr(version, "outline", outlined)  # most files stay as they are
    _forget()
    yield tmp_path
    _forget()


def _forget():
    version._shared.cache_clear()
    version._module.cache_clear()


@pytest.mark.parametrize(
    "name",
    [
        "observations.py",
        "clients/raw_client.py",
        "cluster_under_test/wait_until.py",
        "comparison/verdict.py",
        "comparison/lateness.py",
        "scenarios/helpers/normalise.py",
        "scenarios/scenario.py",
    ],
)
def test_change_of_shared_code_changes_the_version(copied, name):
    before = scenario_version(CATALOGUE[0])
    file = copied / name
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    _forget()
    assert scenario_version(CATALOGUE[0]) != before


def test_a_change_of_a_familys_support_is_another_version_of_its_scenarios_only(tmp_path):
    (tmp_path / "support").mkdir()
    module, support = tmp_path / "family.py", tmp_path / "support" / "helper.py"
    module.write_text("def found():\n    pass\n")
    support.write_text("LIMIT = 1\n")
    namespace = {}
    exec(compile(module.read_text(), module, "exec"), namespace)
    scenario = SimpleNamespace(function=namespace["found"])
    before, others = scenario_version(scenario), scenario_version(CATALOGUE[0])
    support.write_text("LIMIT = 2\n")
    _forget()
    assert scenario_version(scenario) != before
    assert scenario_version(CATALOGUE[0]) == others


@pytest.mark.parametrize("name", sorted(version.NOT_SHARED))
def test_what_only_reads_observations_is_not_part_of_it(copied, name):
    before = scenario_version(CATALOGUE[0])
    file = copied / name
    assert file.exists()
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    _forget()
    assert scenario_version(CATALOGUE[0]) == before


def test_scenarios_of_one_module_share_a_version_and_others_have_another():
    first = CATALOGUE[0]
    versions = {found.family: scenario_version(found) for found in CATALOGUE}
    assert len(set(versions.values())) == len(versions)
    assert all(scenario_version(s) == versions[s.family] for s in CATALOGUE)
    assert Path(first.function.__code__.co_filename).stem == first.family


def test_catalogue_version_changes_when_a_scenario_is_missing():
    assert catalogue_version(CATALOGUE[1:]) != catalogue_version(CATALOGUE)

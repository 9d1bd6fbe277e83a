import pytest
from click.testing import CliRunner

from integration.cli import main
from integration.scenarios.catalogue import CATALOGUE


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_list_names_has_one_name_a_line(run):
    done = run("list", "--names")
    assert done.exit_code == 0
    assert done.output.splitlines() == [found.name for found in CATALOGUE]


def test_list_shows_every_scenario_by_family_with_its_description(run):
    output = run("list").output
    for found in CATALOGUE:
        assert f"  {found.name}\n      {found.description}\n" in output
    assert output.startswith(CATALOGUE[0].family)


def test_a_pattern_that_fits_no_scenario_is_an_error_of_usage(run):
    done = run("--scenario", "nothing_like_it")
    assert done.exit_code == 2
    assert "no scenario is called 'nothing_like_it'" in done.output


def test_an_unknown_reference_is_an_error_of_usage(run):
    done = run("--reference", "elsewhere")
    assert done.exit_code == 2
    assert "choose auto, containers, jvm" in done.output


def test_a_reference_that_does_not_answer_is_exit_code_2(run, tmp_path):
    done = run("--reference", "bootstrap=127.0.0.1:1", "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "no Kafka answers at 127.0.0.1:1" in done.output

"""The two distributions of the repository fit each other, and so do their files."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPARE = ROOT / "integration"


def project(directory):
    return tomllib.loads((directory / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_comparison_requires_the_simulator_of_its_own_version():
    version = project(ROOT)["version"]
    assert project(COMPARE)["version"] == version
    assert f"broker-sim=={version}" in project(COMPARE)["dependencies"]
    assert project(COMPARE)["requires-python"] == project(ROOT)["requires-python"]


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_both_distributions_have_the_same_licence(name):
    assert (COMPARE / name).read_bytes() == (ROOT / name).read_bytes()


def test_no_command_of_one_distribution_is_in_the_other():
    assert project(ROOT)["scripts"].keys().isdisjoint(project(COMPARE)["scripts"])

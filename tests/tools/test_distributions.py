"""The three distributions of the repository fit each other, and so do their files."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPARE = ROOT / "integration"
PURGATORY = ROOT / "purgatory"


def project(directory):
    return tomllib.loads((directory / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_comparison_requires_the_simulator_of_its_own_version():
    version = project(ROOT)["version"]
    assert f"broker-sim=={version}" in project(COMPARE)["dependencies"]


@pytest.mark.parametrize("directory", [COMPARE, PURGATORY], ids=lambda directory: directory.name)
def test_distributions_have_one_version_and_run_on_the_same_pythons(directory):
    for field in ("version", "requires-python"):
        assert project(directory)[field] == project(ROOT)[field]


def test_release_builds_every_distribution():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "for directory in . integration purgatory;" in makefile
    assert {path.parent for path in ROOT.glob("*/pyproject.toml")} == {COMPARE, PURGATORY}


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_all_distributions_have_the_same_licence(name):
    for directory in (COMPARE, PURGATORY):
        assert (directory / name).read_bytes() == (ROOT / name).read_bytes()


def test_no_command_of_one_distribution_is_in_the_other():
    assert project(ROOT)["scripts"].keys().isdisjoint(project(COMPARE)["scripts"])

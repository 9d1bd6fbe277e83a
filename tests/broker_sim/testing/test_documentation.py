"""The examples of docs/virtual-time.md run as they stand."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[3] / "docs" / "virtual-time.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
CONFTEST, *TESTS, PROGRAM = EXAMPLES


def test_examples_of_tests_pass(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(CONFTEST)
    for number, example in enumerate(TESTS):
        pytester.makepyfile(**{f"test_{number}": example})
    result = pytester.runpytest_subprocess("-W", "error")
    result.assert_outcomes(passed=2)


def test_example_of_a_program_runs():
    exec(compile(PROGRAM, PAGE.name, "exec"), {})


def test_arguments_of_the_marker_are_all_listed():
    from broker_sim.testing.options import VirtualTimeOptions

    table = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    listed = {name: default.strip("`").replace('"', "") for name, default in table}
    defaults = VirtualTimeOptions()
    for name in VirtualTimeOptions.__slots__:
        assert listed[name] == f"{getattr(defaults, name)}".removesuffix(".0")


@pytest.mark.parametrize("name", re.findall(r"^\| `(\w+Error)` \|", PAGE.read_text(), re.MULTILINE))
def test_errors_of_the_page_exist(name):
    from broker_sim.cluster import invariants
    from broker_sim.runtime import virtual

    assert issubclass(getattr(virtual, name, None) or getattr(invariants, name), Exception)
